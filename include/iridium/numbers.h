// The element types and the reductions of collectives, by value and by name.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

#include "iridium/device/number.h"

namespace iridium {

/// The type of an array's elements.
enum class DataType { fp16, bf16, fp32, fp64, int8, int32, int64, uint8, uint32, uint64 };

/// All of them, in this order.
std::span<const DataType> data_types();
/// As options and messages spell it: "bf16".
std::string_view name(DataType type);
/// The type called `text`; throws `invalid_argument` with the known names.
DataType parse_data_type(std::string_view text);
/// Bytes of an element.
std::size_t size_of(DataType type);

template <Number T>
constexpr DataType data_type_of() {
  if constexpr (std::same_as<T, fp16>) return DataType::fp16;
  if constexpr (std::same_as<T, bf16>) return DataType::bf16;
  if constexpr (std::same_as<T, float>) return DataType::fp32;
  if constexpr (std::same_as<T, double>) return DataType::fp64;
  if constexpr (std::same_as<T, std::int8_t>) return DataType::int8;
  if constexpr (std::same_as<T, std::int32_t>) return DataType::int32;
  if constexpr (std::same_as<T, std::int64_t>) return DataType::int64;
  if constexpr (std::same_as<T, std::uint8_t>) return DataType::uint8;
  if constexpr (std::same_as<T, std::uint32_t>) return DataType::uint32;
  if constexpr (std::same_as<T, std::uint64_t>) return DataType::uint64;
}

/// What members' elements are combined by, in the order of their places and in the type's
/// `Accumulator`. Integers wrap; `min` and `max` keep a NaN.
enum class ReduceOp {
  sum,
  prod,
  min,
  max,
  avg,  ///< the sum times the rounded 1 / members; of integers, divided, without the fraction
};

/// All of them, in this order.
std::span<const ReduceOp> reduce_ops();
/// "sum".
std::string_view name(ReduceOp op);
/// The reduction called `text`; throws `invalid_argument` with the known names.
ReduceOp parse_reduce_op(std::string_view text);

}  // namespace iridium
