// Deletes something from the protocols, one thing at a time, and expects the means that is there
// for it to notice.
#include <gtest/gtest.h>

#include <cstring>

#include "device/flawed.h"
#include "device/pass_tiles.h"
#include "device/plans.h"
#include "support/sanitizers.h"
#include "support/simulation.h"

namespace iridium::test {
namespace {

struct Trial {
  int ranks = 3;
  bool split = false;
  int max_blocks = 3;
  std::vector<CallKind> kinds = {CallKind::staged_sum};
};

/// Runs a plan of flawed calls; what went wrong, or empty.
template <Flaw flaw>
std::string run_flawed(const Trial& trial, std::uint64_t seed) {
  const Plan plan({.ranks = trial.ranks,
                   .calls = 6,
                   .max_blocks = trial.max_blocks,
                   .max_count = 40,
                   .kinds = trial.kinds},
                  seed);
  SimulationOptions options;
  options.ranks = trial.ranks;
  options.split = trial.split;
  options.seed = seed;
  options.data_bytes = plan.elements() * sizeof(std::uint32_t);
  Simulation simulation(options);
  for (int rank = 0; rank < trial.ranks; ++rank) {
    const auto before = plan.data_before(rank, seed);
    std::memcpy(simulation.data(rank), before.data(), before.size() * sizeof before[0]);
    for (const PlannedCall& call : plan.calls())
      with_kernel<Flawed<flaw>::template Call>(
          call, simulation.lane(rank), simulation.data(rank),
          [&](const auto& kernel) { simulation.launch(rank, call.blocks, kernel); });
  }
  simulation.run();
  for (int rank = 0; rank < trial.ranks; ++rank) {
    const std::uint32_t* data = simulation.data(rank);
    const std::string difference =
        plan.compare(std::vector<std::uint32_t>(data, data + plan.elements()), seed);
    if (!difference.empty()) return difference;
  }
  return {};
}

template <Flaw flaw>
int count_failures(const Trial& trial, std::uint64_t seeds) {
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    failures += !run_flawed<flaw>(trial, seed).empty();
  return failures;
}

/// Under ThreadSanitizer the flaws that are no data races prove nothing, and the others end the
/// process.
class SchedulerControl : public testing::Test {
 protected:
  void SetUp() override {
    if (under_thread_sanitizer) GTEST_SKIP() << "the scheduler's matter";
  }
};

TEST_F(SchedulerControl, TheCopyWithoutFlawIsRight) {
  const Trial all = {.split = true,
                     .kinds = {CallKind::staged_sum, CallKind::broadcast, CallKind::pull_gather,
                               CallKind::push_gather, CallKind::many_barriers}};
  EXPECT_EQ(count_failures<Flaw::none>(all, 100), 0);
}

TEST_F(SchedulerControl, ABlockBarrierRemovedIsFoundInSplitMode) {
  EXPECT_GT(count_failures<Flaw::no_block_barrier>({.split = true}, 50), 10);
}

TEST_F(SchedulerControl, AnExitBarrierLeftOutIsFound) {
  EXPECT_GT(count_failures<Flaw::no_exit_barrier>({.kinds = {CallKind::pull_gather}}, 100), 10);
}

TEST_F(SchedulerControl, OneParityInsteadOfTwoIsFound) {
  EXPECT_GT(count_failures<Flaw::one_parity>({}, 100), 10);
}

TEST_F(SchedulerControl, AStepPerBlockIsFound) {
  EXPECT_GT(count_failures<Flaw::step_per_block>({}, 100), 10);
}

TEST_F(SchedulerControl, AFlagBelowSystemScopeIsRefused) {
  try {
    run_flawed<Flaw::device_scope>({}, 1);
    FAIL() << "nobody noticed";
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string(error.what()).find("at device scope"), std::string::npos) << error.what();
  }
}

template <class Signal>
int count_wrong_tiles(std::uint64_t seeds, bool split) {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SimulationOptions options;
    options.seed = seed;
    options.split = split;
    Simulation simulation(options);
    for (const int rank : {0, 1})
      simulation.launch(rank, 1,
                        PassTiles<Signal>{simulation.lane(rank), simulation.data(rank), 0, 10});
    simulation.run();
    wrong += simulation.data(1)[2] != 0;
  }
  return wrong;
}

TEST_F(SchedulerControl, ASignalWithoutItsBlockBarrierIsFoundInSplitMode) {
  EXPECT_GT(count_wrong_tiles<EarlySignal>(50, true), 25);
  EXPECT_EQ(count_wrong_tiles<EarlySignal>(50, false), 0) << "one fiber per block cannot show it";
  EXPECT_EQ(count_wrong_tiles<RightSignal>(200, true), 0);
}

/// Two calls on one lane, each on a stream of its own.
class TwoCalls {
 public:
  explicit TwoCalls(std::uint64_t seed)
      : seed_(seed),
        plan_({.ranks = 2,
               .calls = 2,
               .max_blocks = 4,
               .max_count = 40,
               .kinds = {CallKind::staged_sum, CallKind::push_gather}},
              seed),
        simulation_(options()) {
    for (const int rank : {0, 1}) {
      const auto before = plan_.data_before(rank, seed);
      std::memcpy(simulation_.data(rank), before.data(), before.size() * sizeof before[0]);
      for (std::size_t i = 0; i < 2; ++i) {
        const PlannedCall& call = plan_.calls()[i];
        with_kernel<LaneCall>(call, simulation_.lane(rank), simulation_.data(rank),
                              [&](const auto& kernel) {
                                simulation_.launch(rank, call.blocks, kernel, static_cast<int>(i));
                              });
      }
    }
    simulation_.run();
  }

  std::optional<FaultRecord> fault(int rank) const { return simulation_.fault(rank); }
  bool is_right(int rank) const {
    const std::uint32_t* data = simulation_.data(rank);
    return plan_.compare(std::vector<std::uint32_t>(data, data + plan_.elements()), seed_).empty();
  }
  bool overlapped(int rank) const { return !is_before(rank, 0, 1) && !is_before(rank, 1, 0); }
  /// By chance the calls ran one after another on both ranks, but not the same one first.
  bool crossed() const {
    return (is_before(0, 0, 1) && is_before(1, 1, 0)) || (is_before(0, 1, 0) && is_before(1, 0, 1));
  }

 private:
  SimulationOptions options() const {
    SimulationOptions options;
    options.seed = seed_;
    options.timeout_turns = 50'000;
    options.data_bytes = plan_.elements() * sizeof(std::uint32_t);
    return options;
  }
  bool is_before(int rank, std::size_t one, std::size_t other) const {
    const auto launch = [&](std::size_t i) { return static_cast<std::size_t>(rank) * 2 + i; };
    return simulation_.span(launch(one)).last <= simulation_.span(launch(other)).first;
  }

  std::uint64_t seed_;
  Plan plan_;
  Simulation simulation_;
};

TEST(LaneBusy, TwoCallsAtOnceAreFound) {
  const std::uint64_t seeds = under_thread_sanitizer ? 30 : 1000;
  std::uint64_t found = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const TwoCalls calls(seed);
    if (calls.fault(0) || calls.fault(1)) {
      ++found;
      ASSERT_TRUE(calls.overlapped(0) || calls.overlapped(1)) << "seed " << seed;
    }
    for (const int rank : {0, 1}) {
      const auto fault = calls.fault(rank);
      if (fault)
        ASSERT_EQ(fault->kind, FaultKind::lane_busy) << "seed " << seed;
      else
        ASSERT_TRUE(calls.is_right(rank) || calls.crossed()) << "seed " << seed;
    }
  }
  EXPECT_GT(found, seeds / 2);
}

/// Only ThreadSanitizer can see these: x86 orders what the language does not.
class RaceControl : public testing::Test {
 protected:
  void SetUp() override {
    if (!under_thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer's matter";
    testing::FLAGS_gtest_death_test_style = "threadsafe";
  }
};
using RaceControlDeathTest = RaceControl;

template <Flaw flaw>
void run_and_exit() {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) run_flawed<flaw>({}, seed);
  std::exit(0);
}

TEST_F(RaceControlDeathTest, TheCopyWithoutFlawHasNoRace) {
  EXPECT_EXIT(run_and_exit<Flaw::none>(), testing::ExitedWithCode(0), "");
}
TEST_F(RaceControlDeathTest, AReleaseRemovedIsARace) {
  EXPECT_EXIT(run_and_exit<Flaw::no_release>(), testing::ExitedWithCode(66), "data race");
}
TEST_F(RaceControlDeathTest, AnAcquireRemovedIsARace) {
  EXPECT_EXIT(run_and_exit<Flaw::no_acquire>(), testing::ExitedWithCode(66), "data race");
}

}  // namespace
}  // namespace iridium::test
