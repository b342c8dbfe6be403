#include "cli/tune_products.h"

#include <gtest/gtest.h>

namespace iridium::cli {
namespace {

const TunedDevice gpu = {"cuda", "NVIDIA_H200"};

/// With a spread of 2 %.
BenchFigure figure_of(const std::string& algorithm, const MatmulShape& shape, double median_us) {
  BenchFigure figure;
  figure.operation = "matmul";
  figure.algorithm = algorithm;
  if (algorithm == "automatic") figure.chosen = "simple";
  figure.dtype = "bf16";
  figure.layout = "nk";
  figure.shape = shape;
  figure.ranks = 1;
  figure.median_us = median_us;
  figure.p10_us = 0.99 * median_us;
  figure.p90_us = 1.01 * median_us;
  return figure;
}

/// Of a product of which `automatic` takes 10 us and hopper as many as given.
std::vector<BenchFigure> timed(const MatmulShape& shape, double hopper_us) {
  return {figure_of("automatic", shape, 10), figure_of("simple", shape, 10.1),
          figure_of("hopper_64x128", shape, hopper_us)};
}

std::vector<BenchFigure> joined(std::initializer_list<std::vector<BenchFigure>> all) {
  std::vector<BenchFigure> figures;
  for (const auto& some : all) figures.insert(figures.end(), some.begin(), some.end());
  return figures;
}

/// The rows' words without operation, type, layout and device.
std::vector<std::string> rows_for(const std::vector<BenchFigure>& figures) {
  std::vector<std::string> texts;
  for (const TunedProductRow& row : rows_of(decide_products(figures).products))
    texts.push_back(name(row.most) + " " + row.algorithm);
  return texts;
}

using Texts = std::vector<std::string>;

TEST(TunedProducts, ChangeWhereAnotherAlgorithmIsAClearGain) {
  EXPECT_EQ(rows_for(timed({16, 8, 8}, 5)), Texts{"16x8x8 hopper_64x128"});
  EXPECT_EQ(rows_for(timed({16, 8, 8}, 9.8)), Texts{"16x8x8 simple"}) << "below 3 %";
  EXPECT_EQ(rows_for(timed({16, 8, 8}, 20)), Texts{"16x8x8 simple"});
  std::vector<BenchFigure> figures = timed({16, 8, 8}, 8.5);
  figures[0].p10_us = 9;
  figures[2].p90_us = 9.05;
  const TunedProducts unsteady = decide_products(figures);
  EXPECT_EQ(unsteady.products.at(0).after, "simple");
  ASSERT_EQ(unsteady.notes.size(), 1u);
  EXPECT_NE(unsteady.notes[0].find("matmul bf16 nk 16x8x8: times were not steady"),
            std::string::npos);
}

TEST(TunedProducts, TakeTheFastestOfSeveral) {
  std::vector<BenchFigure> figures = timed({16, 8, 8}, 5);
  figures.push_back(figure_of("hopper_128x128", {16, 8, 8}, 4));
  figures.push_back(figure_of("hopper_128x256", {16, 8, 8}, 4.5));
  EXPECT_EQ(rows_for(figures), Texts{"16x8x8 hopper_128x128"});
}

TEST(TunedProducts, LeaveOutWhatHasNoFigureToCompareWith) {
  std::vector<BenchFigure> figures = timed({16, 8, 8}, 5);
  figures[0].failed = "wrong result";
  const TunedProducts decided = decide_products(figures);
  EXPECT_TRUE(decided.products.empty());
  ASSERT_EQ(decided.notes.size(), 1u);
  EXPECT_NE(decided.notes[0].find("automatic has no figure"), std::string::npos);
  figures = timed({16, 8, 8}, 5);
  figures[2].skipped = "not here";
  EXPECT_EQ(rows_for(figures), Texts{"16x8x8 simple"});
  figures = timed({16, 8, 8}, 5);
  figures[2].mode = "eager";
  EXPECT_EQ(rows_for(figures), Texts{"16x8x8 simple"});
}

TEST(TunedProducts, ShareRowsAlongM) {
  const auto figures = joined({timed({1, 64, 64}, 20), timed({16, 64, 64}, 20),
                               timed({64, 64, 64}, 5), timed({1024, 64, 64}, 5)});
  EXPECT_EQ(rows_for(figures), (Texts{"32x64x64 simple", "1024x64x64 hopper_64x128"}));
}

TEST(TunedProducts, PutRowsOfSmallerMatricesFirst) {
  const auto figures =
      joined({timed({16, 512, 64}, 5), timed({16, 64, 64}, 20), timed({16, 64, 512}, 20)});
  EXPECT_EQ(rows_for(figures),
            (Texts{"16x64x64 simple", "16x64x512 simple", "16x512x64 hopper_64x128"}));
  std::vector<BenchFigure> other = timed({16, 64, 64}, 5);
  for (BenchFigure& figure : other) figure.layout = "kn";
  EXPECT_EQ(rows_for(joined({figures, other})).size(), 4u);
}

TEST(TunedProducts, AreTablesThatDecide) {
  const auto rows = rows_of(
      decide_products(joined({timed({16, 64, 64}, 20), timed({4096, 64, 3584}, 5)})).products);
  const std::string text = table_text(rows, gpu);
  EXPECT_EQ(text,
            "# operation  dtype  layout  device       M   N   K     algorithm\n"
            "matmul       bf16   nk      NVIDIA_H200  16  64  64    simple\n"
            "matmul       bf16   nk      NVIDIA_H200  4K  64  3584  hopper_64x128\n");
  const TuningTable table(text);
  const MatmulTuningCase what = {.dtype = "bf16",
                                 .layout = "nk",
                                 .backend = "cuda",
                                 .device = "NVIDIA_H200",
                                 .shape = {4096, 64, 3584}};
  EXPECT_EQ(table.choose(what, [](std::string_view) { return true; }), "hopper_64x128");
  EXPECT_NE(summary_text(rows).find("4096  64  3584  simple  10.00  hopper_64x128  5.00   0.500"),
            std::string::npos)
      << summary_text(rows);
  EXPECT_EQ(table_text(std::vector<TunedProductRow>(), gpu) +
                summary_text(std::vector<TunedProductRow>()),
            "");
}

}  // namespace
}  // namespace iridium::cli
