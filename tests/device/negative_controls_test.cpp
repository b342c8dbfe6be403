// Deletes something from the protocols, one thing at a time, and expects the means that is there
// for it to notice.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

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

/// Adds to a flag of the next rank's.
struct AddToNext {
  Lane lane;
  std::uint32_t* flag;

  IR_DEVICE void operator()(Block block) const {
    const Peers peers = lane.peers();
    if (block.is_leader()) atomic_add(block, peers.at(flag, (peers.rank() + 1) % peers.size()), 1u);
  }
};

TEST_F(SchedulerControl, AnUpdateOfAnothersMemoryIsRefusedWhereTheLinkHasNoAtomics) {
  const auto run = [](Link link) {
    SimulationOptions options;
    options.link = link;
    Simulation simulation(options);
    simulation.launch(0, 1, AddToNext{simulation.lane(0), simulation.data(0)});
    simulation.run();
  };
  EXPECT_NO_THROW(run(Link::pcie_atomics));
  try {
    run(Link::pcie);
    FAIL() << "nobody noticed";
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string(error.what()).find("over the link pcie"), std::string::npos)
        << error.what();
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

/// Rank 0 stores a tile at rank 1, which takes it when its first element is there.
struct TakeTileEarly {
  static constexpr int elements = 4096;

  Lane lane;
  std::uint32_t* data;  ///< the tile, then how many of its elements were not there

  IR_DEVICE void operator()(BlockOf<64> block) const {
    if (lane.peers().rank() == 0)
      return store(block, lane.peers().at(data, 1), 0, elements,
                   Tile<std::uint32_t, elements, 64>::filled(1));
    if (!detail::poll(block, lane, [&] {
          return target::load<Order::relaxed, Scope::system>(block.seat(), data) == 1;
        }))
      return;
    std::uint32_t missing = 0;
    for (int i = 0; i < elements; ++i) missing += data[i] != 1;
    data[elements] = missing;
  }
};

TEST_F(SchedulerControl, ATileThatIsTakenBeforeItsSignalIsFound) {
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SimulationOptions options;
    options.seed = seed;
    Simulation simulation(options);
    for (const int rank : {0, 1})
      simulation.launch(rank, 1, TakeTileEarly{simulation.lane(rank), simulation.data(rank)});
    simulation.run();
    failures += simulation.data(1)[TakeTileEarly::elements] != 0;
  }
  EXPECT_GT(failures, 10);
}

/// A call that tells which step it was.
struct TellStep {
  static constexpr int max_blocks = 4;

  Lane lane;
  std::uint32_t* step;  ///< gets it, plus 1
  std::uint32_t* here;  ///< each block's gets 1 at the start; one more when a barrier let it by
  int form;             ///< 0: with an entry barrier, 1: without, 2: only that if it has one block

  IR_DEVICE void operator()(BlockOf<64> block) const {
    LaneCall call(lane, block);
    if (form == 2 && block.count() == 1) {
      if (call.meet() && block.thread() == block.clerk()) *step = call.step() + 1;
      return;
    }
    if (block.is_leader()) come_here(block);
    if (form == 0 ? !call.enter() : !call.begin()) return;
    if (block.index() == 0 && block.is_leader()) *step = call.step() + 1;
    if (form == 0) expect_all_here(block);
    if (call.leave()) expect_all_here(block);
  }

 private:
  // Atomic: where calls overlap, members meet those that are not theirs.
  IR_DEVICE void come_here(BlockOf<64> block) const {
    target::store<Order::relaxed, Scope::system>(block.seat(), here + block.index(), 1u);
  }
  IR_DEVICE void expect_all_here(BlockOf<64> block) const {
    if (!block.is_leader()) return;
    for (int place = 0; place < lane.peers().size(); ++place)
      if (target::load<Order::relaxed, Scope::system>(
              block.seat(), lane.peers().at(here, place) + block.index()) != 1)
        target::store<Order::relaxed, Scope::system>(block.seat(), here + max_blocks, 1u);
  }
};

/// Two calls that may overlap, each with the same grid on every rank.
struct TwoCalls {
  std::array<int, 2> blocks;
  std::array<int, 2> forms;

  explicit TwoCalls(std::uint64_t seed) {
    for (std::size_t call = 0; call < 2; ++call) {
      blocks[call] = 1 + static_cast<int>(seed >> call) % TellStep::max_blocks;
      forms[call] = static_cast<int>((seed >> (2 + 3 * call)) % 3);
    }
  }
  /// How many barriers the blocks with this index join.
  std::uint64_t barriers(int block) const {
    std::uint64_t barriers = 0;
    for (std::size_t call = 0; call < 2; ++call)
      if (block < blocks[call]) barriers += forms[call] == 0 ? 2 : 1;
    return barriers;
  }
};

void expect_overlaps_to_be_found(bool split) {
  const std::uint64_t seeds = under_thread_sanitizer ? 500 : 2000;
  std::uint64_t found = 0;
  std::uint64_t in_order = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimulationOptions options;
    options.seed = seed;
    options.split = split;
    options.timeout_turns = 50'000;
    Simulation simulation(options);
    const TwoCalls calls(seed);
    for (const int rank : {0, 1})
      for (const int call : {0, 1}) {
        const auto i = static_cast<std::size_t>(call);
        simulation.launch(rank, calls.blocks[i],
                          TellStep{simulation.lane(rank), simulation.data(rank) + call,
                                   simulation.data(rank) + 8 + 8 * call, calls.forms[i]},
                          call);
      }
    simulation.run();
    const bool failed = simulation.lane(0).state()->abort != lane_is_well;
    found += failed;
    for (const int rank : {0, 1}) {
      const Lane lane = simulation.lane(rank);
      const LaneState& state = *lane.state();
      ASSERT_EQ(state.abort != lane_is_well, failed);
      if (failed) {
        const auto reporter = std::ranges::find(state.raised, 1u) - state.raised;
        ASSERT_LT(reporter, 2);
        ASSERT_EQ(state.faults[reporter].kind, FaultKind::lane_busy);
        continue;
      }
      // By chance one came after the other, and nothing was mixed up.
      const std::uint32_t* steps = simulation.data(rank);
      const std::uint32_t* others = simulation.data(1 - rank);
      ASSERT_EQ(std::minmax(steps[0], steps[1]), std::minmax(1u, 2u));
      ASSERT_EQ(state.calls, std::uint64_t{2} << 32);
      ASSERT_EQ(state.leavers, 0u);
      for (int block = 0; block < lane.max_blocks(); ++block)
        ASSERT_EQ(lane.block(block).counter, calls.barriers(block)) << "block " << block;
      // Else one rank's first call has met the other's second.
      if (steps[0] != others[0]) continue;
      in_order += rank == 0 ? 1 : 0;
      for (const int call : {0, 1}) ASSERT_EQ(steps[8 + 8 * call + TellStep::max_blocks], 0u);
    }
  }
  EXPECT_GT(found, seeds / 2);
  EXPECT_LT(found, seeds) << "the schedules never let one call end before the other";
  EXPECT_GT(in_order, 0u);
}

TEST(LaneBusy, TwoCallsAtOnceAreFound) {
  expect_overlaps_to_be_found(false);
}
TEST(LaneBusy, TwoCallsAtOnceAreFoundInSplitMode) {
  expect_overlaps_to_be_found(true);
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
