// What becomes of sums before they are elements of D.
#include <gtest/gtest.h>

#include "matmul/operands.h"

namespace iridium::test {
namespace {

using Scales = Finish::Scales;
using Bias = Finish::Bias;
using Residual = Finish::Residual;

/// Each part alone, and together with others.
std::vector<Finish> finishes() {
  std::vector<Finish> all = {
      {.scale = 0.25f},
      {.scales = Scales::one},
      {.scales = Scales::each},
      {.bias = Bias::columns},
      {.bias = Bias::rows},
      {.residual = Residual::apart},
      {.residual = Residual::in_place},
      {.gated = true},
      {.scale = 0.5f,
       .scales = Scales::each,
       .bias = Bias::columns,
       .residual = Residual::in_place},
      {.bias = Bias::rows, .gated = true, .residual = Residual::apart},
  };
  for (const MatmulActivation activation : matmul_activations()) {
    all.push_back({.scale = 0.3f, .activation = activation});
    all.push_back({.scale = 0.3f,
                   .scales = Scales::each,
                   .bias = Bias::columns,
                   .activation = activation,
                   .gated = true,
                   .residual = Residual::in_place});
  }
  return all;
}

class MatmulEpilogues : public testing::Test {
 protected:
  /// Every algorithm that can, with all types, layouts and epilogues.
  void check(ProductCase product) {
    std::uint32_t seed = 0;
    for (const MatmulLayout layout : matmul_layouts())
      for (const Finish& finish : finishes()) {
        product.layout = layout;
        product.finish = finish;
        for_all_types([&]<class T, class D>(T, D) { check<T, D>(product, ++seed); });
      }
  }

 private:
  template <class T, class D>
  void check(const ProductCase& product, std::uint32_t seed) {
    Operands<T, D> operands(context_, product, seed);
    for (const MatmulAlgorithm algorithm : matmul_algorithms()) {
      if (!has_algorithm(stream_, algorithm) || !takes<T>(algorithm, product)) continue;
      operands.renew(seed);
      operands.multiply(stream_, options_of<T>(algorithm));
      EXPECT_EQ(operands.find_error(stream_, is_coarse<T>(algorithm)), "")
          << name(algorithm) << ", " << type_name<T>() << ", " << describe(product);
    }
  }

  Context context_{{.heap_bytes = std::size_t{64} << 20}};
  Stream stream_ = context_.make_stream();
};

TEST_F(MatmulEpilogues, AreAppliedToEveryElement) {
  check({.shape = {9, 136, 72}});
  check({.shape = {70, 272, 40}});
}

TEST_F(MatmulEpilogues, AreAppliedWhereRowsAreRagged) {
  check({.shape = {13, 42, 35}, .d = {.offset = 1, .padding = 3}});
  check({.shape = {66, 134, 35}, .d = {.padding = 1}, .a = {.offset = 1}});
}

TEST_F(MatmulEpilogues, AreAppliedToSumsOfNothing) {
  check({.shape = {9, 20, 0}});
}

TEST_F(MatmulEpilogues, ReadWhatIsThereWhenGraphsRun) {
  const ProductCase product = {.shape = {20, 64, 48},
                               .finish = {.scales = Scales::each,
                                          .bias = Bias::columns,
                                          .activation = MatmulActivation::gelu,
                                          .residual = Residual::in_place}};
  Context context({.heap_bytes = std::size_t{64} << 20});
  Stream stream = context.make_stream();
  Operands<bf16> operands(context, product, 1);
  stream.begin_capture();
  operands.multiply(stream, {});
  const Graph graph = stream.end_capture();
  for (std::uint32_t seed = 2; seed < 5; ++seed) {
    operands.renew(seed);
    stream.launch(graph);
    EXPECT_EQ(operands.find_error(stream), "");
  }
}

}  // namespace
}  // namespace iridium::test
