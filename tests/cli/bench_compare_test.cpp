#include "cli/bench_compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "iridium/errors.h"

namespace iridium::cli {
namespace {

/// With a spread of 2 %.
BenchFigure figure_of(const std::string& operation, double median_us) {
  BenchFigure figure;
  figure.operation = operation;
  figure.ranks = 4;
  figure.bytes = 4096;
  figure.samples = 15;
  figure.calls = 10;
  figure.median_us = median_us;
  figure.p10_us = 0.99 * median_us;
  figure.p90_us = 1.01 * median_us;
  return figure;
}

BenchFigure failed_figure(const std::string& operation) {
  BenchFigure figure = figure_of(operation, 0);
  figure.failed = "element 3 is 5,\nnot 7";
  return figure;
}

BenchFigure skipped_figure(const std::string& operation) {
  BenchFigure figure = figure_of(operation, 0);
  figure.skipped = "no time left";
  return figure;
}

BenchRun run_of(std::vector<BenchFigure> figures) {
  BenchRun run;
  run.machine = {"h200", "Xeon 8480", 16, "NVIDIA H200", "550.54"};
  run.complete = true;
  run.figures = std::move(figures);
  return run;
}

/// Of the only figure of two runs.
FigurePair pair_of(const BenchFigure& before, const BenchFigure& after, double threshold = 0.05) {
  const Comparison comparison = compare(run_of({before}), run_of({after}), threshold);
  EXPECT_EQ(comparison.pairs.size(), 1u);
  return comparison.pairs.at(0);
}

std::string last_line(const std::string& text) {
  const std::size_t begin = text.rfind('\n', text.size() - 2);
  return text.substr(begin == std::string::npos ? 0 : begin + 1);
}

TEST(BenchComparisons, DoNotMixLinks) {
  BenchFigure apart = figure_of("put", 10);
  apart.link = Link::apart;
  const Comparison comparison = compare(run_of({figure_of("put", 10)}), run_of({apart}), 0.05);
  EXPECT_TRUE(comparison.pairs.empty());
}

TEST(BenchComparisons, DoNotMixShapesOrLayouts) {
  BenchFigure before = figure_of("matmul", 10);
  before.bytes = 0;
  before.shape = {16, 264, 1000};
  before.layout = "nk";
  EXPECT_EQ(compare(run_of({before}), run_of({before}), 0.05).pairs.size(), 1u);
  BenchFigure after = before;
  after.shape->depth = 1001;
  EXPECT_TRUE(compare(run_of({before}), run_of({after}), 0.05).pairs.empty());
  after = before;
  after.layout = "kn";
  const Comparison comparison = compare(run_of({before}), run_of({after}), 0.05);
  EXPECT_TRUE(comparison.pairs.empty());
  EXPECT_NE(as_table(comparison).find("iridium matmul nk, 4 ranks, 16x264x1000, graph"),
            std::string::npos)
      << as_table(comparison);
}

TEST(BenchComparisons, DoNotMixGridsThatLeaveRoomWithOthers) {
  BenchFigure beside = figure_of("put", 10);
  beside.beside_compute = true;
  EXPECT_TRUE(compare(run_of({figure_of("put", 10)}), run_of({beside}), 0.05).pairs.empty());
  EXPECT_EQ(compare(run_of({beside}), run_of({beside}), 0.05).pairs.size(), 1u);
}

TEST(BenchComparisons, FlagAPlantedRegression) {
  const BenchRun before = run_of({figure_of("put", 10), figure_of("get", 20)});
  const BenchRun after = run_of({figure_of("put", 10.1), figure_of("get", 22)});
  const Comparison comparison = compare(before, after, 0.05);
  ASSERT_EQ(comparison.pairs.size(), 2u);
  EXPECT_EQ(comparison.pairs[0].change, Change::none);
  EXPECT_EQ(comparison.pairs[1].change, Change::slower);
  EXPECT_NEAR(comparison.pairs[1].ratio, 1.1, 1e-9);
  EXPECT_NEAR(comparison.pairs[1].noise, 0.02 * std::sqrt(2), 1e-9);
  EXPECT_TRUE(comparison.is_worse());
}

TEST(BenchComparisons, ShowHowPlainCopiesChangedButDoNotJudgeThem) {
  BenchFigure before = figure_of("put", 10);
  before.contender = "memory_copy";
  BenchFigure after = before;
  after.median_us = 20;
  const Comparison comparison = compare(run_of({before}), run_of({after}), 0.05);
  EXPECT_EQ(comparison.pairs.at(0).change, Change::none);
  EXPECT_NEAR(comparison.pairs.at(0).ratio, 2, 1e-9);
  EXPECT_FALSE(comparison.is_worse());
}

TEST(BenchComparisons, MarkAnImprovementFaster) {
  const BenchRun before = run_of({figure_of("put", 22)});
  const BenchRun after = run_of({figure_of("put", 20)});
  const Comparison comparison = compare(before, after, 0.05);
  EXPECT_EQ(comparison.pairs.at(0).change, Change::faster);
  EXPECT_FALSE(comparison.is_worse());
  EXPECT_TRUE(compare(after, before, 0.05).is_worse());
}

TEST(BenchComparisons, AreQuietUpToTheLargerOfThresholdAndNoise) {
  const BenchFigure before = figure_of("put", 100);
  EXPECT_EQ(pair_of(before, figure_of("put", 102.7), 0).change, Change::none);
  EXPECT_EQ(pair_of(before, figure_of("put", 103), 0).change, Change::slower);
  EXPECT_EQ(pair_of(before, figure_of("put", 109), 0.1).change, Change::none);
  EXPECT_EQ(pair_of(before, figure_of("put", 111), 0.1).change, Change::slower);
  EXPECT_EQ(pair_of(before, figure_of("put", 92), 0.1).change, Change::none);
  EXPECT_EQ(pair_of(before, figure_of("put", 90), 0.1).change, Change::faster);
  BenchFigure wide = figure_of("put", 150);
  wide.p90_us = 300;
  EXPECT_EQ(pair_of(before, wide).change, Change::none);
}

/// As bench takes it from its samples.
BenchFigure figure_from(std::vector<double> times) {
  std::ranges::sort(times);
  const auto at = [&](double share) {
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
  };
  BenchFigure figure = figure_of("put", at(0.5));
  figure.p10_us = at(0.1);
  figure.p90_us = at(0.9);
  return figure;
}

using Random = std::mt19937_64;

/// Of 1000 pairs of runs whose times are drawn alike, those that are marked at a threshold of 0.
int marked_pairs(std::size_t samples, const std::function<double(Random&)>& draw,
                 double slowdown = 1) {
  Random random(20240607);
  const auto times = [&](double factor) {
    std::vector<double> drawn(samples);
    for (double& time : drawn) time = factor * draw(random);
    return drawn;
  };
  int marked = 0;
  for (int pair = 0; pair < 1000; ++pair) {
    const BenchFigure before = figure_from(times(1));
    const BenchFigure after = figure_from(times(slowdown));
    if (pair_of(before, after, 0).change != Change::none) ++marked;
  }
  return marked;
}

double steady_time(Random& random) {
  return std::normal_distribution(100.0, 1.0)(random);
}

double unsteady_time(Random& random) {
  return std::lognormal_distribution(4.6, 0.3)(random);
}

/// One time in twenty is interrupted.
double interrupted_time(Random& random) {
  const bool is_interrupted = std::bernoulli_distribution(0.05)(random);
  return steady_time(random) * (is_interrupted ? 5 : 1);
}

TEST(BenchComparisons, AreQuietAboutNoise) {
  for (const std::size_t samples : {9u, 15u, 50u}) {
    EXPECT_LT(marked_pairs(samples, steady_time), 10) << samples;
    EXPECT_LT(marked_pairs(samples, unsteady_time), 10) << samples;
    EXPECT_LT(marked_pairs(samples, interrupted_time), 10) << samples;
  }
}

TEST(BenchComparisons, SeeThroughNoise) {
  EXPECT_GT(marked_pairs(15, steady_time, 1.06), 990);
  EXPECT_GT(marked_pairs(15, unsteady_time, 4), 990);
}

TEST(BenchComparisons, CountAFailureAsARegressionWhereThereWasANumber) {
  EXPECT_EQ(pair_of(figure_of("put", 10), failed_figure("put")).change, Change::failed);
  EXPECT_TRUE(
      compare(run_of({figure_of("put", 10)}), run_of({failed_figure("put")}), 1).is_worse());
  EXPECT_EQ(pair_of(failed_figure("put"), figure_of("put", 10)).change, Change::none);
  EXPECT_EQ(pair_of(failed_figure("put"), failed_figure("put")).change, Change::none);
  EXPECT_EQ(pair_of(failed_figure("put"), figure_of("put", 10)).ratio, 0);
}

TEST(BenchComparisons, CountAFigureThatIsNotTriedAnyMoreAsWorse) {
  EXPECT_EQ(pair_of(figure_of("put", 10), skipped_figure("put")).change, Change::skipped);
  EXPECT_TRUE(
      compare(run_of({figure_of("put", 10)}), run_of({skipped_figure("put")}), 1).is_worse());
  EXPECT_EQ(pair_of(skipped_figure("put"), skipped_figure("put")).change, Change::none);
  EXPECT_EQ(pair_of(skipped_figure("put"), figure_of("put", 10)).change, Change::none);
}

TEST(BenchComparisons, CountAFigureThatIsMissingAsWorse) {
  const BenchRun one = run_of({figure_of("put", 10)});
  const BenchRun two = run_of({figure_of("put", 10), figure_of("get", 10)});
  EXPECT_TRUE(compare(two, one, 0.05).is_worse());
  EXPECT_EQ(last_line(as_table(compare(two, one, 0.05))), "worse: 1 missing after\n");
  EXPECT_FALSE(compare(one, two, 0.05).is_worse());
  // There was no number that could be missed.
  EXPECT_FALSE(
      compare(run_of({figure_of("put", 10), skipped_figure("get")}), one, 0.05).is_worse());
}

TEST(BenchComparisons, CountARunThatWasCutShortAsWorse) {
  const BenchRun whole = run_of({figure_of("put", 10)});
  BenchRun cut = whole;
  cut.complete = false;
  EXPECT_TRUE(compare(whole, cut, 0.05).is_worse());
  EXPECT_EQ(last_line(as_table(compare(whole, cut, 0.05))),
            "worse: the run after is not complete\n");
  EXPECT_FALSE(compare(cut, whole, 0.05).is_worse());
}

TEST(BenchComparisons, HaveNoRatioWithoutATime) {
  for (const auto& [before, after] : {std::pair(0.0, 10.0), {10.0, 0.0}, {0.0, 0.0}}) {
    const FigurePair pair = pair_of(figure_of("put", before), figure_of("put", after));
    EXPECT_EQ(pair.ratio, 0);
    EXPECT_EQ(pair.change, Change::none);
  }
}

TEST(BenchComparisons, MatchFiguresByAllThatWasAskedFor) {
  const std::vector<std::function<void(BenchFigure&)>> changes = {
      [](BenchFigure& figure) { figure.operation = "get"; },
      [](BenchFigure& figure) { figure.contender = "torch"; },
      [](BenchFigure& figure) { figure.algorithm = "ring"; },
      [](BenchFigure& figure) { figure.dtype = "bf16"; },
      [](BenchFigure& figure) { figure.op = "max"; },
      [](BenchFigure& figure) { figure.memory = "symmetric"; },
      [](BenchFigure& figure) { figure.mode = "eager"; },
      [](BenchFigure& figure) { figure.ranks = 8; },
      [](BenchFigure& figure) { figure.bytes = 8192; },
      [](BenchFigure& figure) { figure.blocks = 2; },
      [](BenchFigure& figure) { figure.rows = 5; },
      [](BenchFigure& figure) { figure.tile = 2; },
  };
  const BenchFigure before = figure_of("put", 10);
  for (const auto& change : changes) {
    BenchFigure after = before;
    change(after);
    const Comparison comparison = compare(run_of({before}), run_of({after}), 0.05);
    EXPECT_TRUE(comparison.pairs.empty());
    EXPECT_EQ(comparison.only_before.size(), 1u);
    EXPECT_EQ(comparison.only_after.size(), 1u);
  }
}

TEST(BenchComparisons, PairFiguresInWhateverOrderTheyStand) {
  const BenchRun before = run_of({figure_of("put", 1), figure_of("get", 2), figure_of("put", 4)});
  const BenchRun after = run_of({figure_of("get", 2), figure_of("put", 1), figure_of("put", 4)});
  const Comparison comparison = compare(before, after, 0.05);
  ASSERT_EQ(comparison.pairs.size(), 3u);
  for (const FigurePair& pair : comparison.pairs) EXPECT_EQ(pair.ratio, 1);
}

TEST(BenchComparisons, ListFiguresOfOneRunOnlyInTheirOrder) {
  const Comparison comparison =
      compare(run_of({figure_of("scatter", 1), figure_of("put", 1), figure_of("gather", 1)}),
              run_of({figure_of("reduce", 1), figure_of("put", 1), figure_of("get", 1)}), 0.05);
  ASSERT_EQ(comparison.only_before.size(), 2u);
  EXPECT_EQ(comparison.only_before[0].operation, "scatter");
  EXPECT_EQ(comparison.only_before[1].operation, "gather");
  ASSERT_EQ(comparison.only_after.size(), 2u);
  EXPECT_EQ(comparison.only_after[0].operation, "reduce");
  EXPECT_EQ(comparison.only_after[1].operation, "get");
}

TEST(BenchComparisons, GiveTheMedianRatio) {
  const auto median = [](const std::vector<double>& ratios) {
    BenchRun before = run_of({});
    BenchRun after = run_of({failed_figure("get")});
    for (const double ratio : ratios) {
      before.figures.push_back(figure_of("put", 1));
      after.figures.push_back(figure_of("put", ratio));
    }
    before.figures.push_back(figure_of("get", 1));
    return compare(before, after, 0.05).median_ratio();
  };
  EXPECT_EQ(median({}), 0);
  EXPECT_DOUBLE_EQ(median({5, 0.5, 2}), 2);
  EXPECT_DOUBLE_EQ(median({1, 8, 2, 0.5}), std::sqrt(2));
}

TEST(BenchComparisons, WarnOfRunsThatAreNotComparable) {
  const BenchRun before = run_of({});
  EXPECT_TRUE(compare(before, run_of({}), 0.05).warnings.empty());
  BenchRun after = run_of({});
  after.machine.driver = "560.28";
  EXPECT_TRUE(compare(before, after, 0.05).warnings.empty());
  after.machine = {"cpu-2-cores", "EPYC", 2, "", ""};
  after.complete = false;
  const std::string text = as_table(compare(before, after, 0.05));
  EXPECT_EQ(text.find("warning: the machines differ: h200 (Xeon 8480, 16 cores, NVIDIA H200) "
                      "before, cpu-2-cores (EPYC, 2 cores) after\n"
                      "warning: the run after is not complete\n"
                      "\n"),
            0u)
      << text;
  // One name for two models.
  after.machine = before.machine;
  after.machine.cpu = "Xeon 6980";
  EXPECT_EQ(compare(before, after, 0.05).warnings.size(), 2u);
}

TEST(BenchComparisons, WarnOfPeersOfOtherVersions) {
  BenchRun before = run_of({});
  before.versions["torch"] = {{"torch", "2.9.0"}, {"cuda", "12.8"}};
  BenchRun after = before;
  EXPECT_TRUE(compare(before, after, 0.05).warnings.empty());
  after.versions["torch"]["torch"] = "2.11.0";
  EXPECT_EQ(compare(before, after, 0.05).warnings,
            (std::vector<std::string>{"the versions of torch differ: cuda 12.8, torch 2.9.0 "
                                      "before, cuda 12.8, torch 2.11.0 after"}));
  // Nobody was measured there whose version could matter.
  EXPECT_TRUE(compare(before, run_of({}), 0.05).warnings.empty());
}

TEST(BenchComparisons, AreTablesForPeople) {
  BenchFigure reduce = figure_of("reduce", 1);
  reduce.algorithm = "ring";
  reduce.dtype = "bf16";
  reduce.op = "sum";
  reduce.memory = "plain";
  reduce.ranks = 1;
  reduce.bytes = 0;
  reduce.blocks = 16;
  reduce.tile = 2;
  const Comparison comparison =
      compare(run_of({figure_of("put", 10), figure_of("get", 20), figure_of("send", 5), reduce}),
              run_of({figure_of("put", 10), figure_of("get", 22), failed_figure("send"),
                      figure_of("gather", 3)}),
              0.05);
  EXPECT_EQ(as_table(comparison),
            "figure                                    us before  us after  ratio  noise  change  "
            "remark\n"
            "iridium put, 4 ranks, 4096 bytes, graph   10.000     10.000    1.000  2.8 %\n"
            "iridium get, 4 ranks, 4096 bytes, graph   20.000     22.000    1.100  2.8 %  slower\n"
            "iridium send, 4 ranks, 4096 bytes, graph  5.000                              failed  "
            "failed after: element 3 is 5, not 7\n"
            "\n"
            "only before:\n"
            "  iridium reduce ring bf16 sum plain, 1 rank, 16 blocks, tile 2, graph\n"
            "\n"
            "only after:\n"
            "  iridium gather, 4 ranks, 4096 bytes, graph\n"
            "\n"
            "3 in both runs: 1 slower, 0 faster, 1 failed, 0 skipped; 1 only before, 1 only "
            "after; median ratio 1.049, threshold 5 %\n"
            "worse: 1 slower, 1 failed after, 1 missing after\n");
}

TEST(BenchComparisons, SayWhyThereAreNoNumbers) {
  const std::string text =
      as_table(compare(run_of({failed_figure("put")}), run_of({skipped_figure("put")}), 0.05));
  EXPECT_NE(text.find("failed before: element 3 is 5, not 7; skipped after: no time left\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(last_line(as_table(compare(run_of({}), run_of({}), 0))),
            "0 in both runs: 0 slower, 0 faster, 0 failed, 0 skipped; 0 only before, 0 only "
            "after; no ratio, threshold 0 %\n");
}

TEST(BenchComparisons, RefuseAThresholdThatIsNone) {
  for (const double threshold :
       {-0.01, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_THROW(compare(run_of({}), run_of({}), threshold), Error) << threshold;
}

}  // namespace
}  // namespace iridium::cli
