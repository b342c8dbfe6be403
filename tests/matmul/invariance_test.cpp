// Bits that stay the same.
#include <gtest/gtest.h>

#include <algorithm>

#include "matmul/operands.h"

namespace iridium::test {
namespace {

template <class T, class D>
std::vector<std::uint32_t> product_of(Context& context, const ProductCase& product,
                                      const MatmulOptions& options) {
  Stream stream = context.make_stream();
  Operands<T, D> operands(context, product, 5);
  operands.multiply(stream, options);
  return operands.result(stream);
}

constexpr std::size_t row_counts[] = {1, 8, 9, 16, 17, 64, 65, 130, 300};

/// Rows are the first ones of the product with the most rows, bit by bit.
template <class T, class D>
void expect_same_rows(Context& context, ProductCase product, const MatmulOptions& options) {
  product.shape.rows = 300;
  const std::vector<std::uint32_t> all = product_of<T, D>(context, product, options);
  for (const std::size_t rows : row_counts) {
    product.shape.rows = rows;
    const std::vector<std::uint32_t> some = product_of<T, D>(context, product, options);
    ASSERT_LE(some.size(), all.size());
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()))
        << type_name<T>() << ", " << describe(product);
  }
}

TEST(MatmulInvariance, RowsDoNotDependOnTheirNumber) {
  Context context({.heap_bytes = std::size_t{64} << 20});
  for (const MatmulLayout layout : matmul_layouts())
    for_all_types([&]<class T, class D>(T, D) {
      MatmulOptions invariant = options_of<T>(MatmulAlgorithm::automatic);
      invariant.invariant = true;
      const Finish finish = {.bias = Finish::Bias::columns, .activation = MatmulActivation::silu};
      expect_same_rows<T, D>(context, {.shape = {0, 136, 520}, .layout = layout}, invariant);
      expect_same_rows<T, D>(context,
                             {.shape = {0, 72, 131},
                              .layout = layout,
                              .a = {.offset = 1},
                              .b = {.offset = 3},
                              .finish = finish},
                             invariant);
    });
}

TEST(MatmulInvariance, OfSimpleAndTiledProductsIsAlwaysSo) {
  Context context({.heap_bytes = std::size_t{64} << 20});
  for (const MatmulLayout layout : matmul_layouts()) {
    for (const MatmulAlgorithm algorithm : {MatmulAlgorithm::simple, MatmulAlgorithm::tiled})
      expect_same_rows<bf16, bf16>(context, {.shape = {0, 37, 200}, .layout = layout},
                                   {.algorithm = algorithm});
    // Few rows in small tiles, and all of them in large ones.
    expect_same_rows<fp16, fp16>(context, {.shape = {0, 500, 200}, .layout = layout},
                                 {.algorithm = MatmulAlgorithm::tiled});
  }
}

TEST(MatmulInvariance, EveryRunHasTheSameBits) {
  Context context({.heap_bytes = std::size_t{64} << 20});
  Stream stream = context.make_stream();
  const ProductCase product = {.shape = {16, 264, 1000}, .layout = MatmulLayout::nk};
  for (const MatmulAlgorithm algorithm : matmul_algorithms()) {
    if (!has_algorithm(stream, algorithm)) continue;
    const auto first = product_of<bf16, bf16>(context, product, {.algorithm = algorithm});
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ((product_of<bf16, bf16>(context, product, {.algorithm = algorithm})), first)
          << name(algorithm);
  }
}

TEST(MatmulInvariance, BitsDoNotDependOnAddresses) {
  Context context({.heap_bytes = std::size_t{64} << 20});
  Stream stream = context.make_stream();
  for (const MatmulLayout layout : matmul_layouts())
    for_all_types([&]<class T, class D>(T, D) {
      for (const MatmulAlgorithm algorithm : matmul_algorithms()) {
        ProductCase product = {.shape = {16, 264, 1000},
                               .layout = layout,
                               .finish = {.scale = 0.5f, .bias = Finish::Bias::columns}};
        if (!has_algorithm(stream, algorithm) || !takes<T>(algorithm, product)) continue;
        const auto aligned = product_of<T, D>(context, product, options_of<T>(algorithm));
        for (Placing* const placing : {&product.a, &product.b, &product.d}) {
          *placing = {.offset = 3, .padding = 5};
          EXPECT_EQ((product_of<T, D>(context, product, options_of<T>(algorithm))), aligned)
              << name(algorithm) << ", " << type_name<T>() << ", " << describe(product);
        }
      }
    });
}

}  // namespace
}  // namespace iridium::test
