// Matrices and options that cannot be, refused before anything is launched.
#include <gtest/gtest.h>

#include <limits>

#include "matmul/operands.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

class MatmulRefusal : public testing::Test {
 protected:
  using Half = Matrix<bf16>;
  using Input = Matrix<const bf16>;

  /// The error has this code and says all of `parts`.
  void expect(Errc code, const std::vector<std::string>& parts, const Half& d, const Input& a,
              const Input& b, const MatmulOptions& options = {}) {
    const Error error = expect_error(code, [&] { matmul(stream_, d, a, b, options); });
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << part << " is not in: " << error.what();
  }
  void expect_invalid(const std::vector<std::string>& parts, const Half& d, const Input& a,
                      const Input& b, const MatmulOptions& options = {}) {
    expect(Errc::invalid_argument, parts, d, a, b, options);
  }

  Context context_{{.heap_bytes = std::size_t{64} << 20}};
  Stream stream_ = context_.make_stream();
  SymmetricArray<bf16> memory_ = context_.allocate<bf16>(30'000);
  bf16* d_ = memory_.data();
  bf16* a_ = memory_.data() + 10'000;
  bf16* b_ = memory_.data() + 20'000;
};

TEST_F(MatmulRefusal, OfShapesThatDoNotFit) {
  const Half d = {d_, 8, 16, 16};
  const Input a = {a_, 8, 24, 24};
  matmul(stream_, d, a, {b_, 24, 16, 16});
  matmul(stream_, d, a, {b_, 16, 24, 24}, {.layout = MatmulLayout::nk});
  expect_invalid({"D has 8 rows and 16 columns", "8 × 24", "16 × 24", "kn"}, d, a,
                 {b_, 16, 24, 24});
  expect_invalid({"24 × 16", "nk"}, d, a, {b_, 24, 16, 16}, {.layout = MatmulLayout::nk});
  expect_invalid({"7 × 24"}, d, {a_, 7, 24, 24}, {b_, 24, 16, 16});
  expect_invalid({"8 × 23"}, d, {a_, 8, 23, 24}, {b_, 24, 16, 16});
  expect_invalid({"24 × 17"}, d, a, {b_, 24, 17, 17});
  stream_.synchronize();
}

TEST_F(MatmulRefusal, OfPitchesBelowARow) {
  const Half d = {d_, 8, 16, 16};
  const Input a = {a_, 8, 24, 24};
  const Input b = {b_, 24, 16, 16};
  expect_invalid({"D has a pitch of 15 elements and 16 columns"}, {d_, 8, 16, 15}, a, b);
  expect_invalid({"A has a pitch of 0 elements and 24 columns"}, d, {a_, 8, 24, 0}, b);
  expect_invalid({"B has a pitch of 15 elements"}, d, a, {b_, 24, 16, 15});
}

TEST_F(MatmulRefusal, OfMatricesThatNoMemoryHolds) {
  constexpr std::size_t many = std::numeric_limits<std::size_t>::max() / 4;
  expect_invalid({"D has 4611686018427387903 rows", "over the limit of 9223372036854775807 bytes"},
                 {d_, many, 16, 16}, {a_, many, 24, 24}, {b_, 24, 16, 16});
}

TEST_F(MatmulRefusal, OfNull) {
  const Half d = {d_, 8, 16, 16};
  const Input a = {a_, 8, 24, 24};
  const Input b = {b_, 24, 16, 16};
  expect_invalid({"D is null and has 8 rows and 16 columns"}, {nullptr, 8, 16, 16}, a, b);
  expect_invalid({"A is null"}, d, {nullptr, 8, 24, 24}, b);
  expect_invalid({"B is null"}, d, a, {nullptr, 24, 16, 16});
  matmul(stream_, Half{nullptr, 0, 16, 16}, Input{nullptr, 0, 24, 24}, {b_, 24, 16, 16});
}

TEST_F(MatmulRefusal, OfHalfElements) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that no object can have
  auto* const odd = reinterpret_cast<bf16*>(reinterpret_cast<std::uintptr_t>(a_) + 1);
  expect_invalid({"A begins 1 bytes behind an element of bf16"}, {d_, 8, 16, 16}, {odd, 8, 24, 24},
                 {b_, 24, 16, 16});
}

TEST_F(MatmulRefusal, OfOverlap) {
  const Input a = {a_, 8, 24, 24};
  const Input b = {b_, 24, 16, 16};
  expect_invalid({"D (256 bytes", "overlaps A (384 bytes"}, {a_ + 191, 8, 16, 16}, a, b);
  matmul(stream_, Half{a_ + 192, 8, 16, 16}, a, b);
  matmul(stream_, Half{a_ - 128, 8, 16, 16}, a, b);
  expect_invalid({"overlaps A"}, {a_ - 127, 8, 16, 16}, a, b);
  expect_invalid({"overlaps B (768 bytes"}, {b_, 8, 16, 16}, a, b);
  // A and B may be one.
  matmul(stream_, Half{d_, 8, 8, 8}, {a_, 8, 8, 8}, {a_, 8, 8, 8});
  stream_.synchronize();
}

TEST_F(MatmulRefusal, OfAlgorithmsThatAreNotHereOrCannot) {
  const Half d = {d_, 17, 16, 16};
  const Input a = {a_, 17, 24, 24};
  const Input b = {b_, 16, 24, 24};
  for (const MatmulAlgorithm algorithm : matmul_algorithms()) {
    const MatmulOptions options = {.algorithm = algorithm, .layout = MatmulLayout::nk};
    const std::string word(name(algorithm));
    if (!has_algorithm(stream_, algorithm)) {
      expect(Errc::unsupported, {word}, d, a, b, options);
    } else if (algorithm == MatmulAlgorithm::narrow) {
      expect_invalid({"16 rows, not 17"}, d, a, b, options);
      expect_invalid({"B stored as nk"}, {d_, 8, 16, 16}, {a_, 8, 24, 24}, {b_, 24, 16, 16},
                     {.algorithm = algorithm});
    } else {
      matmul(stream_, d, a, b, options);
    }
  }
  expect_invalid({"there is no algorithm with number 17"}, d, a, b,
                 {.algorithm = static_cast<MatmulAlgorithm>(17), .layout = MatmulLayout::nk});
  expect_invalid({"there is no layout of B with number 2"}, d, a, b,
                 {.layout = static_cast<MatmulLayout>(2)});
  stream_.synchronize();
}

TEST_F(MatmulRefusal, OfTf32WithoutFloats) {
  expect_invalid({"tf32 is for matrices of fp32, not bf16"}, {d_, 8, 16, 16}, {a_, 8, 24, 24},
                 {b_, 24, 16, 16}, {.tf32 = true});
}

class MatmulEpilogueRefusal : public MatmulRefusal {
 protected:
  void expect_invalid_with(const std::vector<std::string>& parts,
                           const MatmulEpilogue<bf16>& epilogue) {
    const Error error = expect_error(Errc::invalid_argument, [&] { run(epilogue); });
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << part << " is not in: " << error.what();
  }
  void run(const MatmulEpilogue<bf16>& epilogue) {
    const std::size_t columns = epilogue.gated ? 8 : 16;
    matmul(stream_, Half{d_, 8, columns, columns}, {a_, 8, 24, 24}, {b_, 24, 16, 16}, {}, epilogue);
    stream_.synchronize();
  }

  float* const scales_ = reinterpret_cast<float*>(memory_.data() + 28'000);
  bf16* const row_ = memory_.data() + 29'000;
};

TEST_F(MatmulEpilogueRefusal, OfWhatIsInD) {
  expect_invalid_with({"D (256 bytes", "overlaps the bias (32 bytes"}, {.bias = d_ + 127});
  run({.bias = d_ + 128});
  expect_invalid_with({"overlaps the bias (16 bytes"},
                      {.bias = d_ - 7, .bias_along = MatmulBias::rows});
  run({.bias = d_ - 8, .bias_along = MatmulBias::rows});
  auto* const in_d = reinterpret_cast<float*>(d_ + 126);
  expect_invalid_with({"overlaps A's scales (4 bytes"}, {.a_scales = {in_d}});
  expect_invalid_with({"overlaps B's scales (64 bytes"}, {.b_scales = {in_d, true}});
}

TEST_F(MatmulEpilogueRefusal, OfScalesThatAreNotThere) {
  expect_invalid_with({"A's scales are null, and 8 are asked for"}, {.a_scales = {nullptr, true}});
  expect_invalid_with({"B's scales are null, and 16"}, {.b_scales = {nullptr, true}});
  run({.a_scales = {scales_, true}, .b_scales = {scales_}});
}

TEST_F(MatmulEpilogueRefusal, OfResidualsThatAreNotAsD) {
  expect_invalid_with({"D has 8 rows and 16 columns, and the residual 8 and 15"},
                      {.residual = {row_, 8, 15, 16}});
  expect_invalid_with({"the residual has a pitch of 15"}, {.residual = {row_, 8, 16, 15}});
  expect_invalid_with({"the residual is null"}, {.residual = {nullptr, 8, 16, 16}});
  expect_invalid_with({"overlaps the residual"}, {.residual = {d_ + 1, 8, 16, 16}});
  expect_invalid_with({"overlaps the residual"}, {.residual = {d_, 8, 16, 17}});
  run({.residual = {d_, 8, 16, 16}});
  run({.gated = true, .residual = {d_, 8, 8, 8}});
}

TEST_F(MatmulEpilogueRefusal, OfWhatThereIsNot) {
  expect_invalid_with({"there is no activation with number 4"},
                      {.activation = static_cast<MatmulActivation>(4)});
  expect_invalid_with({"there is no direction of a bias with number 2"},
                      {.bias_along = static_cast<MatmulBias>(2)});
}

TEST_F(MatmulEpilogueRefusal, OfGatesWithoutPairs) {
  const Error odd = expect_error(Errc::invalid_argument, [&] {
    matmul(stream_, Half{d_, 8, 7, 7}, {a_, 8, 24, 24}, {b_, 24, 15, 15}, {}, {.gated = true});
  });
  EXPECT_NE(std::string(odd.what()).find("pairs, and B has 15"), std::string::npos) << odd.what();
  const Error whole = expect_error(Errc::invalid_argument, [&] {
    matmul(stream_, Half{d_, 8, 16, 16}, {a_, 8, 24, 24}, {b_, 24, 16, 16}, {}, {.gated = true});
  });
  EXPECT_NE(std::string(whole.what()).find("kn and gated"), std::string::npos) << whole.what();
}

TEST(MatmulNames, AreReadAsTheyAreWritten) {
  for (const MatmulAlgorithm algorithm : matmul_algorithms())
    EXPECT_EQ(parse_matmul_algorithm(name(algorithm)), algorithm);
  for (const MatmulLayout layout : matmul_layouts())
    EXPECT_EQ(parse_matmul_layout(name(layout)), layout);
  expect_error(Errc::invalid_argument, [] { parse_matmul_algorithm("fast"); });
  for (const MatmulActivation activation : matmul_activations())
    EXPECT_EQ(parse_matmul_activation(name(activation)), activation);
  expect_error(Errc::invalid_argument, [] { parse_matmul_layout("mn"); });
  expect_error(Errc::invalid_argument, [] { parse_matmul_activation("swish"); });
}

}  // namespace
}  // namespace iridium::test
