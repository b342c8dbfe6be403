#include "iridium/numbers.h"

#include "base/names.h"

namespace iridium {
namespace {

constexpr Names<DataType, 10> type_names = {
    "data type",
    {"fp16", "bf16", "fp32", "fp64", "int8", "int32", "int64", "uint8", "uint32", "uint64"}};
constexpr auto types = type_names.values();

constexpr Names<ReduceOp, 5> op_names = {"reduction", {"sum", "prod", "min", "max", "avg"}};
constexpr auto ops = op_names.values();

}  // namespace

std::span<const DataType> data_types() {
  return types;
}
std::string_view name(DataType type) {
  return type_names.name(type);
}
DataType parse_data_type(std::string_view text) {
  return type_names.parse(text);
}

std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::int8:
    case DataType::uint8:
      return 1;
    case DataType::fp16:
    case DataType::bf16:
      return 2;
    case DataType::fp32:
    case DataType::int32:
    case DataType::uint32:
      return 4;
    case DataType::fp64:
    case DataType::int64:
    case DataType::uint64:
      return 8;
  }
  return 0;
}

std::span<const ReduceOp> reduce_ops() {
  return ops;
}
std::string_view name(ReduceOp op) {
  return op_names.name(op);
}
ReduceOp parse_reduce_op(std::string_view text) {
  return op_names.parse(text);
}

}  // namespace iridium
