// Deletes something from the collectives' protocols, one thing at a time, and expects drawn
// schedules to notice.
#include <gtest/gtest.h>

#include <algorithm>

#include "collectives/flawed_kernels.h"
#include "collectives/simulated_calls.h"
#include "support/sanitizers.h"

namespace iridium::test {
namespace {

constexpr int ranks = 3;
constexpr int calls = 10;
constexpr std::uint32_t count = 44;  // in rounds of 16, the last one is shorter
constexpr std::uint32_t chunk = 16;
constexpr std::uint64_t seeds = 100;

enum class Result { sum, of_place_0 };

Rounds rounds_of(std::uint32_t size, int blocks) {
  const auto divided = [](std::uint32_t a, std::uint32_t b) { return (a + b - 1) / b; };
  return {.total = count,
          .chunk = size,
          .part = divided(divided(size, static_cast<std::uint32_t>(blocks)), 4) * 4,
          .count = divided(count, size)};
}

/// Calls on one lane under one schedule. Every rank writes a call's input right before it, and
/// overwrites it right behind it.
class Control {
 public:
  Control(std::uint64_t seed, std::uint32_t first_step, bool split = false)
      : seed_(seed),
        simulation_({.ranks = ranks,
                     .seed = seed,
                     .split = split,
                     .timeout_turns = 50'000,
                     .first_step = first_step}) {}

  /// Rounds have `size` elements.
  template <class Kernel>
  void launch(int call, int blocks, std::uint32_t size) {
    for (int rank = 0; rank < ranks; ++rank) {
      std::uint32_t* const data = simulation_.data(rank);
      const ControlArrays arrays = {data + in(call), data + in(call) + count, count};
      simulation_.launch(rank, 1, WriteInput{data, in(call), count, seed_, rank});
      simulation_.launch(rank, blocks,
                         Kernel{simulation_.lane(rank), arrays, rounds_of(size, blocks)});
      simulation_.launch(rank, 1, WriteInput{data, in(call), count, 0, rank});
    }
  }
  void run() { simulation_.run(); }

  /// Whether the call ended, with the right results.
  bool is_right(int call, Result result) const {
    for (int rank = 0; rank < ranks; ++rank) {
      if (simulation_.fault(rank)) return false;
      for (std::uint32_t i = 0; i < count; ++i) {
        std::uint32_t expected = 0;
        for (int place = 0; place < (result == Result::sum ? ranks : 1); ++place)
          expected += drawn_input(seed_, place, in(call) + i);
        if (simulation_.data(rank)[in(call) + count + i] != expected) return false;
      }
    }
    return true;
  }

 private:
  static std::uint32_t in(int call) { return static_cast<std::uint32_t>(call) * 2 * count; }

  std::uint64_t seed_;
  Simulation simulation_;
};

/// How many schedules a kernel does not survive.
template <class Kernel>
std::uint64_t count_failures(std::uint32_t size, Result result = Result::sum,
                             std::uint32_t first_step = 100, bool split = false) {
  std::uint64_t failures = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Control control(seed, first_step, split);
    for (int call = 0; call < calls; ++call)
      control.launch<Kernel>(
          call, 1 + static_cast<int>(seed + static_cast<std::uint64_t>(call)) % 4, size);
    control.run();
    bool right = true;
    for (int call = 0; call < calls; ++call) right = right && control.is_right(call, result);
    failures += !right;
  }
  return failures;
}

/// Under ThreadSanitizer the flaws that are data races end the process.
class CollectivesControl : public testing::Test {
 protected:
  void SetUp() override {
    if (under_thread_sanitizer) GTEST_SKIP() << "the scheduler's matter";
  }
};

TEST_F(CollectivesControl, AnEntryBarrierLeftOutIsFound) {
  EXPECT_GT((count_failures<DirectControl<Flawed<Flaw::none>::Call, false>>(count)), 10u);
}

TEST_F(CollectivesControl, AnExitBarrierLeftOutIsFound) {
  EXPECT_EQ(count_failures<DirectControl<Flawed<Flaw::none>::Call>>(count), 0u);
  EXPECT_GT(count_failures<DirectControl<Flawed<Flaw::no_exit_barrier>::Call>>(count), 10u);
}

TEST_F(CollectivesControl, OneParityInsteadOfTwoIsFound) {
  EXPECT_EQ(count_failures<StagedControl<Flawed<Flaw::none>::Call>>(chunk), 0u);
  EXPECT_GT(count_failures<StagedControl<Flawed<Flaw::one_parity>::Call>>(chunk), 10u);
}

TEST_F(CollectivesControl, ResultsWhereTheNextCallStagesAreFound) {
  for (const std::uint32_t size : {count, chunk}) {
    EXPECT_EQ(count_failures<TwoShotControl<true>>(size), 0u) << size;
    EXPECT_GT(count_failures<TwoShotControl<false>>(size), 10u) << size;
  }
}

TEST_F(CollectivesControl, ABarrierLeftOutBetweenPushesIsFound) {
  for (const std::uint32_t size : {count, chunk}) {
    EXPECT_EQ(count_failures<PushControl<PushFlaw::none>>(size), 0u) << size;
    EXPECT_GT(count_failures<PushControl<PushFlaw::sums_at_once>>(size), 10u) << size;
    EXPECT_GT(count_failures<PushControl<PushFlaw::takes_at_once>>(size), 10u) << size;
  }
}

TEST_F(CollectivesControl, PushesToWhereResultsLieAreFound) {
  for (const std::uint32_t size : {count, chunk})
    EXPECT_GT(count_failures<PushControl<PushFlaw::sums_where_sent>>(size), 10u) << size;
}

/// In split mode, where blocks run the loops that GPUs run.
template <QueueFlaw flaw>
std::uint64_t count_queue_failures() {
  return count_failures<QueueControl<flaw>>(count, Result::sum, 100, true);
}

TEST_F(CollectivesControl, AMissingWaitForVectorsInFlightIsFound) {
  EXPECT_EQ(count_queue_failures<QueueFlaw::none>(), 0u);
  EXPECT_GT(count_queue_failures<QueueFlaw::no_wait>(), 90u);
  EXPECT_GT(count_queue_failures<QueueFlaw::short_wait>(), 90u);
}

TEST_F(CollectivesControl, APlaceOfAVectorUsedTooEarlyIsFound) {
  EXPECT_GT(count_queue_failures<QueueFlaw::place_too_early>(), 90u);
}

TEST_F(CollectivesControl, PartsThatMoveBetweenRoundsAreFound) {
  using Moving = StagedControl<LaneCall, StagingFlaw::moving_parts>;
  EXPECT_EQ((count_failures<StagedControl<LaneCall>>(chunk)), 0u);
  EXPECT_GT(count_failures<Moving>(chunk), 10u);
}

TEST_F(CollectivesControl, ABroadcastThatHearsFromNobodyIsFound) {
  EXPECT_EQ(count_failures<BroadcastControl<true>>(count, Result::of_place_0), 0u);
  EXPECT_GT(count_failures<BroadcastControl<false>>(count, Result::of_place_0), 10u);
}

TEST_F(CollectivesControl, TagsThatNeedNotBeEqualAreFoundAfterManyCalls) {
  // The lane's packets are fresh, as they look after 2^31 calls of other kinds.
  constexpr std::uint32_t early = 100;
  constexpr std::uint32_t late = 0x80000002;
  using Equal = PacketControl<Acceptance::equal>;
  using AtLeast = PacketControl<Acceptance::at_least>;
  EXPECT_EQ(count_failures<Equal>(count, Result::sum, early), 0u);
  EXPECT_EQ(count_failures<Equal>(count, Result::sum, late), 0u);
  EXPECT_EQ(count_failures<AtLeast>(count, Result::sum, early), 0u) << "nobody would know";
  EXPECT_GT(count_failures<AtLeast>(count, Result::sum, late), 10u);
}

TEST_F(CollectivesControl, PacketsTakenByTheirFirstHalfAreFound) {
  EXPECT_GT(count_failures<PacketControl<Acceptance::first_half>>(count), 10u);
}

/// How often packets are mistaken for those of the call after the next: a staged call comes before
/// them, whose elements are that call's tags.
template <StagingFlaw flaw>
std::uint64_t count_mistaken_elements() {
  std::uint64_t failures = 0;
  constexpr std::uint32_t first_step = 100;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Control control(seed, first_step);
    control.launch<StagedControl<LaneCall, flaw, first_step + 2>>(0, 2, count);
    for (const int call : {1, 2}) control.launch<PacketControl<Acceptance::equal>>(call, 2, count);
    control.run();
    failures += !control.is_right(1, Result::sum) || !control.is_right(2, Result::sum);
  }
  return failures;
}

TEST_F(CollectivesControl, ElementsWherePacketsArriveAreFound) {
  EXPECT_EQ(count_mistaken_elements<StagingFlaw::none>(), 0u);
  EXPECT_GT(count_mistaken_elements<StagingFlaw::in_packet_area>(), 10u);
}

}  // namespace
}  // namespace iridium::test
