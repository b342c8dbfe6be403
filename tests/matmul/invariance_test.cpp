// Bits that stay the same.
#include <gtest/gtest.h>

#include <algorithm>

#include "matmul/operands.h"

namespace iridium::test {
namespace {

template <class T>
std::vector<std::uint16_t> product_of(Context& context, const ProductCase& product,
                                      const MatmulOptions& options) {
  Stream stream = context.make_stream();
  Operands<T> operands(context, product, 5);
  operands.multiply(stream, options);
  return operands.result(stream);
}

constexpr std::size_t row_counts[] = {1, 8, 9, 16, 17, 64, 65, 130, 300};

/// Rows are the first ones of the product with the most rows, bit by bit.
template <class T>
void expect_same_rows(Context& context, ProductCase product, const MatmulOptions& options) {
  product.shape.rows = 300;
  const std::vector<std::uint16_t> all = product_of<T>(context, product, options);
  for (const std::size_t rows : row_counts) {
    product.shape.rows = rows;
    const std::vector<std::uint16_t> some = product_of<T>(context, product, options);
    ASSERT_LE(some.size(), all.size());
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << describe(product);
  }
}

TEST(MatmulInvariance, RowsDoNotDependOnTheirNumber) {
  Context context({.heap_bytes = std::size_t{64} << 20});
  for (const MatmulLayout layout : matmul_layouts())
    for_both_types([&]<class T>(T) {
      const MatmulOptions invariant = {.invariant = true};
      expect_same_rows<T>(context, {.shape = {0, 136, 520}, .layout = layout}, invariant);
      expect_same_rows<T>(
          context,
          {.shape = {0, 72, 131}, .layout = layout, .a = {.offset = 1}, .b = {.offset = 3}},
          invariant);
    });
}

TEST(MatmulInvariance, OfASimpleProductIsAlwaysSo) {
  Context context({.heap_bytes = std::size_t{64} << 20});
  for (const MatmulLayout layout : matmul_layouts())
    expect_same_rows<bf16>(context, {.shape = {0, 37, 200}, .layout = layout},
                           {.algorithm = MatmulAlgorithm::simple});
}

TEST(MatmulInvariance, EveryRunHasTheSameBits) {
  Context context({.heap_bytes = std::size_t{64} << 20});
  Stream stream = context.make_stream();
  for (const MatmulAlgorithm algorithm : matmul_algorithms()) {
    const ProductCase product = {.shape = {16, 264, 1000}, .layout = MatmulLayout::nk};
    if (!has_algorithm(stream, algorithm)) continue;
    const auto first = product_of<bf16>(context, product, {.algorithm = algorithm});
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(product_of<bf16>(context, product, {.algorithm = algorithm}), first)
          << name(algorithm);
  }
}

}  // namespace
}  // namespace iridium::test
