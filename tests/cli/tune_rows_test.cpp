#include "cli/tune_rows.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace iridium::cli {
namespace {

const TunedDevice gpu = {"cuda", "NVIDIA_H200"};

/// Decides everything for `packet` up to 64K, and for `two_shot` from there on.
const TuningTable& current() {
  static const TuningTable table(
      "all_reduce * cuda * 64K packet   64 1 0\n"
      "all_reduce * cuda * *   two_shot 64 2 256K\n"
      "all_gather * *    * *   pull     64 4 0\n"
      "all_to_all * *    * *   push     64 4 0\n");
  return table;
}

/// A figure of the choice's algorithm, with what the table has for the rest.
BenchFigure figure(std::size_t bytes, const std::string& algorithm, double microseconds,
                   int ranks = 2) {
  BenchFigure figure;
  figure.operation = "all_reduce";
  figure.algorithm = algorithm;
  figure.memory = "plain";
  figure.ranks = ranks;
  figure.bytes = bytes;
  figure.samples = figure.calls = 7;
  figure.median_us = figure.p10_us = figure.p90_us = microseconds;
  return figure;
}

BenchFigure with_grid(BenchFigure figure, int blocks, int tile = 0) {
  figure.blocks = blocks;
  figure.tile = tile;
  return figure;
}

BenchFigure failed(BenchFigure figure) {
  figure.median_us = 0;
  figure.failed = "output 3 is 5";
  return figure;
}

/// The table that the figures lead to, without its heading and with single blanks.
std::string rows_from(const std::vector<BenchFigure>& figures, const TunedDevice& device = gpu) {
  std::string text = table_text(rows_of(decide(figures, device, current()).cases), device);
  EXPECT_NO_THROW(TuningTable{text}) << text;
  EXPECT_TRUE(text.starts_with("# operation")) << text;
  text.erase(0, text.find('\n', text.find("# operation")) + 1);
  std::string single;
  for (const char letter : text)
    if (letter != ' ' || single.back() != ' ') single += letter;
  return single;
}

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

TEST(TuneRows, StayWithTheCurrentChoiceWithinNoise) {
  EXPECT_EQ(rows_from({figure(4 * kib, "packet", 10), figure(4 * kib, "one_shot", 9.8)}),
            "all_reduce plain NVIDIA_H200 shared * * packet 64 1 0\n");
  EXPECT_EQ(rows_from({figure(4 * kib, "packet", 10), figure(4 * kib, "one_shot", 9.6)}),
            "all_reduce plain NVIDIA_H200 shared * * one_shot 64 1 0\n");
  // Of two that are faster, the fastest.
  EXPECT_EQ(rows_from({figure(4 * kib, "one_shot", 9), figure(4 * kib, "packet", 10),
                       figure(4 * kib, "two_shot", 8)}),
            "all_reduce plain NVIDIA_H200 shared * * two_shot 64 1 0\n");
}

TEST(TuneRows, NeedAGainThatIsMoreThanTheSpreadOfTheFigures) {
  const BenchFigure before = figure(4 * kib, "packet", 10);
  BenchFigure noisy = figure(4 * kib, "one_shot", 7);
  noisy.p90_us = 14;
  EXPECT_EQ(rows_from({before, noisy}), "all_reduce plain NVIDIA_H200 shared * * packet 64 1 0\n");
  // One that is not as fast, but surely faster.
  EXPECT_EQ(rows_from({before, noisy, figure(4 * kib, "two_shot", 8)}),
            "all_reduce plain NVIDIA_H200 shared * * two_shot 64 1 0\n");
}

TEST(TuneRows, LeaveUnsteadyTimesAndSaySo) {
  // A machine that was busy while the current choice had its turn.
  BenchFigure disturbed = figure(4 * kib, "packet", 40);
  disturbed.p10_us = 3;
  disturbed.p90_us = 60;
  const BenchFigure other = figure(4 * kib, "one_shot", 10);
  EXPECT_EQ(rows_from({disturbed, other}),
            "all_reduce plain NVIDIA_H200 shared * * packet 64 1 0\n");
  const TunedCases decided = decide({disturbed, other}, gpu, current());
  ASSERT_EQ(decided.notes.size(), 1u);
  EXPECT_EQ(decided.notes[0],
            "all_reduce plain, 2 ranks, 4 KiB: times were not steady; what may be faster is not "
            "taken");
  // Faster whatever disturbed the current one.
  EXPECT_EQ(rows_from({disturbed, figure(4 * kib, "two_shot", 2)}),
            "all_reduce plain NVIDIA_H200 shared * * two_shot 64 1 0\n");
}

TEST(TuneRows, CallTimesThatTouchUnsteady) {
  BenchFigure before = figure(4 * kib, "packet", 10);
  before.p10_us = 8;
  BenchFigure other = figure(4 * kib, "one_shot", 7);
  other.p90_us = 7.75;
  EXPECT_EQ(rows_from({before, other}),
            "all_reduce plain NVIDIA_H200 shared * * one_shot 64 1 0\n");
  other.p90_us = 8;
  EXPECT_EQ(rows_from({before, other}), "all_reduce plain NVIDIA_H200 shared * * packet 64 1 0\n");
  EXPECT_TRUE(decide({before, other}, gpu, current()).cases.at(0).is_unsteady);
}

TEST(TuneRows, MergeNeighbouringSizesAndEndInTheirMiddle) {
  EXPECT_EQ(rows_from({figure(4 * kib, "packet", 1), figure(16 * kib, "packet", 2),
                       figure(mib, "two_shot", 9), figure(mib, "one_shot", 5),
                       figure(4 * mib, "two_shot", 9), figure(4 * mib, "one_shot", 5),
                       figure(16 * mib, "two_shot", 9), figure(16 * mib, "one_shot", 10)}),
            "all_reduce plain NVIDIA_H200 shared * 128K packet 64 1 0\n"
            "all_reduce plain NVIDIA_H200 shared * 8M one_shot 64 2 256K\n"
            "all_reduce plain NVIDIA_H200 shared * * two_shot 64 2 256K\n");
  // Sizes may come in any order, and middles need not be round.
  EXPECT_EQ(rows_from({figure(128 * kib, "two_shot", 1), figure(64 * kib, "packet", 1)}),
            "all_reduce plain NVIDIA_H200 shared * 92682 packet 64 1 0\n"
            "all_reduce plain NVIDIA_H200 shared * * two_shot 64 2 256K\n");
}

TEST(TuneRows, ComeByMembersTheLastOfWhichAreForAnyMore) {
  EXPECT_EQ(rows_from({figure(4 * kib, "packet", 9, 8), figure(4 * kib, "one_shot", 5, 8),
                       figure(4 * kib, "packet", 5, 2), figure(mib, "two_shot", 5, 2),
                       figure(4 * kib, "packet", 9, 4), figure(4 * kib, "two_shot", 5, 4),
                       // Alone there is nothing to choose.
                       figure(4 * kib, "packet", 5, 1)}),
            "all_reduce plain NVIDIA_H200 shared 2 64K packet 64 1 0\n"
            "all_reduce plain NVIDIA_H200 shared 2 * two_shot 64 2 256K\n"
            "all_reduce plain NVIDIA_H200 shared 4 * two_shot 64 1 0\n"
            "all_reduce plain NVIDIA_H200 shared * * one_shot 64 1 0\n");
}

TEST(TuneRows, TakeGridsThatTheMessageHasUseFor) {
  const BenchFigure large = figure(16 * mib, "two_shot", 10);
  EXPECT_EQ(rows_from({large, with_grid(large, 16, 4)}),
            "all_reduce plain NVIDIA_H200 shared * * two_shot 64 2 256K\n");
  const BenchFigure faster = with_grid(figure(16 * mib, "two_shot", 5), 16, 4);
  EXPECT_EQ(rows_from({large, faster}),
            "all_reduce plain NVIDIA_H200 shared * * two_shot 16 4 256K\n");
  // So many blocks come of asking for them alone, not of a row.
  BenchFigure useless = with_grid(figure(4 * kib, "packet", 5), 1024);
  EXPECT_EQ(rows_from({figure(4 * kib, "packet", 10), useless}),
            "all_reduce plain NVIDIA_H200 shared * * packet 64 1 0\n");
}

TEST(TuneRows, CountTheSameChoiceOnce) {
  // What is left to the table, and the same by name.
  const BenchFigure left = figure(16 * mib, "automatic", 10);
  const BenchFigure same = with_grid(figure(16 * mib, "two_shot", 8), 64, 2);
  EXPECT_EQ(rows_from({left, same, figure(16 * mib, "one_shot", 7.9)}),
            "all_reduce plain NVIDIA_H200 shared * * two_shot 64 2 256K\n");
}

TEST(TuneRows, AreForTheLargestBuffer) {
  std::vector<BenchFigure> figures;
  for (const int ranks : {2, 8})
    for (const std::size_t bytes : {4 * kib, 16 * kib}) {
      figures.push_back(figure(bytes, "pull", 10, ranks));
      figures.push_back(figure(bytes, "push", bytes == 4 * kib ? 5 : 20, ranks));
    }
  for (BenchFigure& each : figures) each.operation = "all_gather";
  EXPECT_EQ(rows_from(figures, {"host", "Some_CPU"}),
            "all_gather plain host shared 2 16K push 64 4 0\n"
            "all_gather plain host shared 2 * pull 64 4 0\n"
            "all_gather plain host shared * 64K push 64 4 0\n"
            "all_gather plain host shared * * pull 64 4 0\n");
}

TEST(TuneRows, KeepOperationsAndKindsOfMemoryApart) {
  BenchFigure symmetric = figure(mib, "two_shot", 1);
  symmetric.memory = "symmetric";
  BenchFigure exchange = figure(mib, "", 1);
  exchange.operation = "all_to_all";
  EXPECT_EQ(rows_from({exchange, symmetric, figure(mib, "two_shot", 1)}),
            "all_reduce plain NVIDIA_H200 shared * * two_shot 64 2 256K\n"
            "all_reduce symmetric NVIDIA_H200 shared * * two_shot 64 2 256K\n"
            "all_to_all plain NVIDIA_H200 shared * * push 64 4 0\n");
}

/// As ranks measured it that have this link between them.
BenchFigure over(Link link, BenchFigure figure) {
  figure.link = link;
  return figure;
}

TEST(TuneRows, AreForTheLinkThatWasMeasured) {
  // Two GPUs share NVLink, four do not.
  const std::vector<BenchFigure> figures = {
      over(Link::nvlink, figure(4 * kib, "packet", 10)),
      over(Link::nvlink, figure(4 * kib, "one_shot", 5)),
      over(Link::pcie_atomics, figure(4 * kib, "packet", 10, 4)),
      over(Link::pcie_atomics, figure(4 * kib, "two_shot", 5, 4)),
      // Ranks that died know of no link.
      failed(figure(4 * kib, "ring", 1, 4)),
  };
  EXPECT_EQ(rows_from(figures),
            "all_reduce plain NVIDIA_H200 nvlink * * one_shot 64 1 0\n"
            "all_reduce plain NVIDIA_H200 pcie * * two_shot 64 1 0\n");
  EXPECT_EQ(decide({over(Link::pcie, figure(mib, "packet", 1))}, gpu, current()).notes.at(0),
            "all_reduce plain, 2 ranks, 1 MiB, pcie: the current choice has no figure; it stays");
}

TEST(TuneRows, CompareWithWhatTheCurrentTableHasForTheLink) {
  const TuningTable table("all_reduce * cuda pcie * * ring 32 2 0\n* * * * * packet 1 1 0\n");
  const TunedCases tuned = decide({over(Link::pcie, figure(mib, "automatic", 1))}, gpu, table);
  EXPECT_EQ(tuned.cases.at(0).before, (Choice{"ring", 32, 2, 0}));
  EXPECT_EQ(decide({figure(mib, "automatic", 1)}, gpu, table).cases.at(0).before.algorithm,
            "packet");
}

TEST(TuneRows, LeaveCasesWithoutAFigureToTheCurrentTable) {
  const std::vector<BenchFigure> figures = {
      figure(4 * kib, "packet", 10),         failed(figure(4 * kib, "one_shot", 5)),
      failed(figure(mib, "two_shot", 10)),   figure(mib, "one_shot", 5),
      figure(4 * mib, "two_shot", 10),       figure(4 * mib, "one_shot", 5),
      failed(figure(4 * kib, "ring", 1, 4)),
  };
  EXPECT_EQ(rows_from(figures),
            "all_reduce plain NVIDIA_H200 shared 2 64K packet 64 1 0\n"
            "all_reduce plain NVIDIA_H200 shared 2 2M two_shot 64 2 256K\n"
            "all_reduce plain NVIDIA_H200 shared 2 * one_shot 64 2 256K\n"
            "all_reduce plain NVIDIA_H200 shared * * packet 64 1 0\n");
  EXPECT_EQ(decide(figures, gpu, current()).notes,
            (std::vector<std::string>{
                "all_reduce plain, 2 ranks, 1 MiB: the current choice has no figure; it stays",
                "all_reduce plain, 4 ranks, 4 KiB: the current choice has no figure; it stays",
                "all_reduce failed: output 3 is 5 (3 times)"}));
}

TEST(TuneRows, AreNotThereForWhatNothingIsKnownOf) {
  BenchFigure skipped = figure(mib, "two_shot", 0);
  skipped.skipped = "no room";
  BenchFigure eager = figure(mib, "two_shot", 1);
  eager.mode = "eager";
  BenchFigure copy = figure(mib, "", 1);
  copy.contender = "copy_kernel";
  const TunedCases tuned = decide({skipped, eager, copy}, gpu, current());
  EXPECT_TRUE(rows_of(tuned.cases).empty());
  EXPECT_EQ(tuned.notes.back(), "all_reduce skipped: no room (once)");
  EXPECT_TRUE(rows_of({}).empty());
}

TEST(TuneTables, KeepTheirCommentsInComments) {
  const std::string text = comment_lines({"one\ntwo", "three"});
  EXPECT_TRUE(text == "# one two\n# three\n") << text;
  EXPECT_NO_THROW(TuningTable{text});
}

TEST(TuneTables, AreSummedUpForPeople) {
  const std::vector<BenchFigure> figures = {
      figure(4 * kib, "packet", 10), figure(4 * kib, "one_shot", 5), figure(16 * kib, "packet", 40),
      figure(16 * kib, "one_shot", 20), failed(figure(mib, "two_shot", 1))};
  EXPECT_EQ(summary_text(rows_of(decide(figures, gpu, current()).cases)),
            "operation   memory  link    members  bytes  before         us     after          us   "
            "  ratio\n"
            "all_reduce  plain   shared  *        128K   packet 64 1    20.00  one_shot 64 1  "
            "10.00  0.500\n"
            "all_reduce  plain   shared  *        *      two_shot 64 2         two_shot 64 2\n");
}

}  // namespace
}  // namespace iridium::cli
