#include "iridium/numbers.h"

#include <gtest/gtest.h>

#include <string>

#include "support/ranks.h"

namespace iridium {
namespace {

struct Named {
  DataType type;
  DataType of_language;
  const char* name;
  std::size_t bytes;
};
constexpr Named types[] = {
    {DataType::fp16, data_type_of<fp16>(), "fp16", 2},
    {DataType::bf16, data_type_of<bf16>(), "bf16", 2},
    {DataType::fp32, data_type_of<float>(), "fp32", 4},
    {DataType::fp64, data_type_of<double>(), "fp64", 8},
    {DataType::int8, data_type_of<std::int8_t>(), "int8", 1},
    {DataType::int32, data_type_of<std::int32_t>(), "int32", 4},
    {DataType::int64, data_type_of<std::int64_t>(), "int64", 8},
    {DataType::uint8, data_type_of<std::uint8_t>(), "uint8", 1},
    {DataType::uint32, data_type_of<std::uint32_t>(), "uint32", 4},
    {DataType::uint64, data_type_of<std::uint64_t>(), "uint64", 8},
};

TEST(DataTypes, HaveNamesAndSizes) {
  ASSERT_EQ(data_types().size(), std::size(types));
  for (std::size_t i = 0; i < std::size(types); ++i) {
    EXPECT_EQ(data_types()[i], types[i].type);
    EXPECT_EQ(types[i].of_language, types[i].type) << types[i].name;
    EXPECT_EQ(name(types[i].type), types[i].name);
    EXPECT_EQ(parse_data_type(types[i].name), types[i].type);
    EXPECT_EQ(size_of(types[i].type), types[i].bytes) << types[i].name;
  }
}

TEST(Reductions, HaveNames) {
  constexpr std::pair<ReduceOp, const char*> ops[] = {{ReduceOp::sum, "sum"},
                                                      {ReduceOp::prod, "prod"},
                                                      {ReduceOp::min, "min"},
                                                      {ReduceOp::max, "max"},
                                                      {ReduceOp::avg, "avg"}};
  ASSERT_EQ(reduce_ops().size(), std::size(ops));
  for (std::size_t i = 0; i < std::size(ops); ++i) {
    EXPECT_EQ(reduce_ops()[i], ops[i].first);
    EXPECT_EQ(name(ops[i].first), ops[i].second);
    EXPECT_EQ(parse_reduce_op(ops[i].second), ops[i].first);
  }
}

TEST(Names, ThatAreUnknownAreRefusedWithTheKnownOnes) {
  for (const std::string text : {"", "FP16", "float", "int16", " sum", "sum ", "average"}) {
    const std::string type =
        test::expect_error(Errc::invalid_argument, [&] { parse_data_type(text); }).what();
    const std::string op =
        test::expect_error(Errc::invalid_argument, [&] { parse_reduce_op(text); }).what();
    EXPECT_NE(type.find("'" + text + "'"), std::string::npos) << type;
    EXPECT_NE(op.find("'" + text + "'"), std::string::npos) << op;
    for (const DataType known : data_types())
      EXPECT_NE(type.find(name(known)), std::string::npos) << type;
    for (const ReduceOp known : reduce_ops())
      EXPECT_NE(op.find(name(known)), std::string::npos) << op;
  }
}

}  // namespace
}  // namespace iridium
