// What kernels do when a wait does not end well.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "device/lane_kernels.h"
#include "iridium/device/signal.h"
#include "support/simulation.h"

namespace iridium::test {
namespace {

struct Meet {
  Lane lane;
  IR_DEVICE void operator()(BlockOf<32> block) const {
    LaneCall call(lane, block);
    if (call.enter()) call.finish();
  }
};

/// A call that is nothing but a barrier.
struct OnlyMeet {
  Lane lane;
  IR_DEVICE void operator()(BlockOf<64> block) const { LaneCall(lane, block).meet(); }
};

struct WaitFor {
  Lane lane;
  std::uint32_t* flag;
  std::uint32_t value;
  int from;
  std::uint32_t* after;  ///< set when the wait was satisfied

  IR_DEVICE void operator()(BlockOf<32> block) const {
    if (wait(block, lane, flag, value, Compare::equal, from) && block.is_leader()) *after = 1;
  }
};

SimulationOptions with_ranks(int ranks, std::uint64_t seed = 1) {
  SimulationOptions options;
  options.ranks = ranks;
  options.seed = seed;
  options.timeout_turns = 20'000;
  return options;
}

void expect_same_record(const Simulation& simulation, int ranks) {
  const auto first = simulation.fault(0);
  ASSERT_TRUE(first.has_value());
  for (int rank = 1; rank < ranks; ++rank) {
    const auto other = simulation.fault(rank);
    ASSERT_TRUE(other.has_value()) << "rank " << rank;
    EXPECT_EQ(std::memcmp(&*first, &*other, sizeof *first), 0) << "rank " << rank;
  }
}

TEST(SimulatedFaults, ARankThatStaysAwayIsNamedByAll) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Simulation simulation(with_ranks(4, seed));
    for (int rank = 0; rank < 4; ++rank) {
      simulation.launch(rank, 2, Meet{simulation.lane(rank, 0, "first")});
      if (rank != 2) simulation.launch(rank, 3, Meet{simulation.lane(rank, 0, "second")});
    }
    simulation.run();
    // It learns of the fault from its next kernel, which does not wait for anybody.
    simulation.launch(2, 3, Meet{simulation.lane(2, 0, "second")});
    simulation.run();
    expect_same_record(simulation, 4);
    const FaultRecord fault = *simulation.fault(0);
    EXPECT_EQ(fault.kind, FaultKind::timeout);
    EXPECT_EQ(fault.missing, 0b0100u);
    EXPECT_EQ(fault.step, 1u);
    EXPECT_EQ(fault.expected, fault.block < 2 ? 2u : 1u);
    EXPECT_EQ(fault.seen, fault.expected - 1);
    EXPECT_NE(fault.reporter, 2u);
    EXPECT_STREQ(fault.operation.text, "second");
  }
}

TEST(SimulatedFaults, WithoutNativeAtomicsTheLowestPlaceThatReportsWins) {
  std::uint64_t late_winners = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SimulationOptions options = with_ranks(4, seed);
    options.link = Link::pcie;
    // Members settle for a sixteenth of it, which has to be longer than drawn stalls.
    options.timeout_turns = 300'000;
    Simulation simulation(options);
    // Three reasons at about the same time.
    for (const int rank : {3, 2, 1})
      simulation.launch(rank, 2 + rank, OnlyMeet{simulation.lane(rank)});
    simulation.run();
    simulation.launch(0, 1, Meet{simulation.lane(0)});
    simulation.run();
    expect_same_record(simulation, 4);
    ASSERT_EQ(simulation.fault(0)->kind, FaultKind::grid_too_large) << "seed " << seed;
    const LaneState& state = *simulation.lane(0).state();
    const auto reporter = static_cast<int>(simulation.fault(0)->reporter);
    for (int place = 0; place < reporter; ++place) EXPECT_EQ(state.raised[place], 0u);
    for (int place = reporter + 1; place < 4; ++place) late_winners += state.raised[place];
  }
  EXPECT_GT(late_winners, 0u) << "never did two members report";
}

TEST(SimulatedFaults, AFailedTeamStaysFailedAndItsKernelsDrainAtOnce) {
  Simulation simulation(with_ranks(2));
  simulation.launch(0, 1, Meet{simulation.lane(0)});
  simulation.run();
  ASSERT_TRUE(simulation.fault(0).has_value());
  const std::uint64_t before = simulation.turns();
  for (int i = 0; i < 100; ++i) simulation.launch(0, 4, Meet{simulation.lane(0)});
  simulation.run();
  EXPECT_LT(simulation.turns() - before, 20'000u);
}

TEST(SimulatedFaults, ANewTeamOfTheSameRanksWorks) {
  Simulation simulation(with_ranks(2));
  simulation.launch(0, 1, Meet{simulation.lane(0)});
  simulation.run();
  const int again = simulation.make_team({0, 1});
  for (const int rank : {0, 1}) simulation.launch(rank, 1, Meet{simulation.lane(rank, again)});
  simulation.run();
  EXPECT_FALSE(simulation.fault(0, again).has_value());
  EXPECT_FALSE(simulation.fault(1, again).has_value());
}

TEST(SimulatedFaults, AGridLargerThanTheLaneIsRefused) {
  Simulation simulation(with_ranks(2));
  const int limit = simulation.lane(0).max_blocks();
  for (const int rank : {0, 1}) simulation.launch(rank, limit + 1, Meet{simulation.lane(rank)});
  simulation.run();
  expect_same_record(simulation, 2);
  EXPECT_EQ(simulation.fault(0)->kind, FaultKind::grid_too_large);
  EXPECT_EQ(simulation.fault(0)->expected, static_cast<std::uint32_t>(limit));
  EXPECT_EQ(simulation.fault(0)->seen, static_cast<std::uint32_t>(limit) + 1);
}

TEST(SimulatedFaults, ABarrierCallHasOneBlock) {
  Simulation simulation(with_ranks(2));
  for (const int rank : {0, 1}) simulation.launch(rank, 1, OnlyMeet{simulation.lane(rank)});
  simulation.run();
  ASSERT_FALSE(simulation.fault(0).has_value());
  for (const int rank : {0, 1}) simulation.launch(rank, 2, OnlyMeet{simulation.lane(rank)});
  simulation.run();
  ASSERT_TRUE(simulation.fault(0).has_value());
  EXPECT_EQ(simulation.fault(0)->kind, FaultKind::grid_too_large);
  EXPECT_EQ(simulation.fault(0)->expected, 1u);
}

/// Several barriers of one kernel.
struct MeetAgain {
  Lane lane;
  int times;
  std::uint32_t* met;
  IR_DEVICE void operator()(BlockOf<64> block) const {
    LaneCall call(lane, block);
    for (int i = 0; i < times; ++i) {
      if (!call.meet()) return;
      if (block.is_leader()) ++*met;
    }
  }
};

TEST(SimulatedFaults, BarrierCallsInARowOfOneKernelMeet) {
  for (const bool split : {false, true})
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      SimulationOptions options = with_ranks(3, seed);
      options.split = split;
      Simulation simulation(options);
      for (int rank = 0; rank < 3; ++rank)
        simulation.launch(rank, 1, MeetAgain{simulation.lane(rank), 5, simulation.data(rank)});
      simulation.run();
      for (int rank = 0; rank < 3; ++rank) {
        ASSERT_FALSE(simulation.fault(rank).has_value()) << "seed " << seed;
        ASSERT_EQ(*simulation.data(rank), 5u) << "seed " << seed;
      }
    }
}

TEST(SimulatedFaults, TheHostFindsTheWholeRecord) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Simulation simulation(with_ranks(2, seed));
    for (const int rank : {0, 1}) simulation.launch(rank, 2, OnlyMeet{simulation.lane(rank)});
    simulation.run();
    expect_same_record(simulation, 2);
    const FaultRecord found = *simulation.fault(0);
    EXPECT_EQ(found.kind, FaultKind::grid_too_large) << "seed " << seed;
    EXPECT_EQ(
        std::memcmp(&found, &simulation.lane(0).state()->faults[found.reporter], sizeof found), 0)
        << "seed " << seed;
  }
}

/// Lets others run for so many turns.
struct Dawdle {
  int turns;
  IR_DEVICE void operator()(BlockOf<32> block) const {
    for (int i = 0; i < turns; ++i) block.pause(false);
  }
};

TEST(SimulatedFaults, AFaultEndsTheWaitsOfOtherMembersWithoutTheirHosts) {
  SimulationOptions options = with_ranks(3);
  options.timeout_turns = 30'000'000;
  Simulation simulation(options);
  for (const int rank : {0, 2}) simulation.launch(rank, 2, Meet{simulation.lane(rank)});
  // By then the others have been waiting for long.
  simulation.launch(1, 1, Dawdle{5000});
  simulation.launch(1, 2, OnlyMeet{simulation.lane(1)});
  simulation.run();
  EXPECT_GT(simulation.turns(), 5000u);
  EXPECT_LT(simulation.turns(), 100'000u) << "waits went on behind the fault";
  expect_same_record(simulation, 3);
  EXPECT_EQ(simulation.fault(0)->kind, FaultKind::grid_too_large);
  EXPECT_EQ(simulation.fault(0)->reporter, 1u);
}

TEST(SimulatedFaults, OnlyMembersThatHaveLeftAreNamedWhereOthersAreLate) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Simulation simulation(with_ranks(4, seed));
    simulation.leave(3);
    for (const int rank : {0, 1}) simulation.launch(rank, 1, Meet{simulation.lane(rank)});
    simulation.run();
    ASSERT_TRUE(simulation.fault(0).has_value());
    EXPECT_EQ(simulation.fault(0)->kind, FaultKind::peer_left);
    EXPECT_EQ(simulation.fault(0)->missing, 0b1000u);
  }
}

TEST(SimulatedFaults, TheHostEndsWaits) {
  Simulation simulation(with_ranks(2));
  simulation.abort(0);
  simulation.launch(0, 2, Meet{simulation.lane(0)});
  simulation.run();
  EXPECT_LT(simulation.turns(), 10'000u) << "the wait was not cut short";
  EXPECT_FALSE(simulation.fault(0).has_value()) << "the host knows the reason already";
  EXPECT_EQ(simulation.lane(0).state()->abort, std::uint32_t{lane_ended_by_host});
}

TEST(SimulatedFaults, AWaitNamesItsSignallerWhereItIsKnown) {
  for (const int from : {1, -1}) {
    Simulation simulation(with_ranks(2));
    std::uint32_t* const data = simulation.data(0);
    data[0] = 6;
    simulation.launch(0, 1, WaitFor{simulation.lane(0), data, 7, from, data + 1});
    simulation.run();
    ASSERT_TRUE(simulation.fault(0).has_value());
    EXPECT_EQ(simulation.fault(0)->missing, from == 1 ? 0b10u : 0u);
    EXPECT_EQ(simulation.fault(0)->expected, 7u);
    EXPECT_EQ(simulation.fault(0)->seen, 6u);
    EXPECT_EQ(data[1], 0u);
  }
}

TEST(SimulatedFaults, AMissingPacketNamesItsSender) {
  Simulation simulation(with_ranks(3));
  for (const int rank : {0, 2})
    simulation.launch(rank, 1,
                      PacketSum{simulation.lane(rank), {simulation.data(rank), 0, 64, 5, 1, 0}});
  simulation.run();
  ASSERT_TRUE(simulation.fault(0).has_value());
  EXPECT_EQ(simulation.fault(0)->missing, 0b010u);
}

/// Receives the packet of member 1 in slot 0.
struct ReceiveOne {
  Lane lane;
  bool in_a_batch;
  std::uint32_t* data;  ///< gets the packet's

  IR_DEVICE void operator()(BlockOf<32> block) const {
    LaneCall call(lane, block);
    if (!call.begin()) return;
    Packet packets[2] = {};
    const bool received = in_a_batch ? receive_packets<2>(call, 0, 0, packets)
                                     : receive_packet(call, 1, 0, packets[1]);
    if (!received) return explain_packet(call, 0);
    for (const int i : {0, 1}) data[i] = packets[1].data[i];
    call.finish();
  }
};

TEST(SimulatedFaults, HalfAPacketIsNotAccepted) {
  SimulationOptions options = with_ranks(2);
  options.first_step = 6;
  for (const bool in_a_batch : {false, true})
    for (const unsigned halves : {0b00u, 0b01u, 0b10u, 0b11u}) {
      SCOPED_TRACE("halves " + std::to_string(halves) + (in_a_batch ? ", in a batch" : ""));
      Simulation simulation(options);
      target::Pair& packet = *simulation.lane(0).packets(0, 1);
      constexpr std::uint64_t tag = std::uint64_t{6} << 32;
      if ((halves & 0b01) != 0) packet.first = tag | 7;
      if ((halves & 0b10) != 0) packet.second = tag | 8;
      std::uint32_t* const data = simulation.data(0);
      simulation.launch(0, 1, ReceiveOne{simulation.lane(0), in_a_batch, data});
      simulation.run();
      const bool is_whole = halves == 0b11;
      EXPECT_EQ(data[0], is_whole ? 7u : 0u);
      EXPECT_EQ(data[1], is_whole ? 8u : 0u);
      ASSERT_EQ(simulation.fault(0).has_value(), !is_whole);
      if (is_whole) continue;
      EXPECT_EQ(simulation.fault(0)->kind, FaultKind::timeout);
      EXPECT_EQ(simulation.fault(0)->missing, 0b10u);
    }
}

/// Breaks the rule that a block's threads do the same.
struct OneThreadLeaves {
  IR_DEVICE void operator()(BlockOf<32> block) const {
    if (block.thread() == 1) return;
    block.sync();
  }
};

TEST(SimulatedFaults, AThreadThatMissesABlockBarrierIsAnError) {
  SimulationOptions options = with_ranks(1);
  options.split = true;
  Simulation simulation(options);
  simulation.launch(0, 1, OneThreadLeaves{});
  EXPECT_THROW(simulation.run(), Error);
}

}  // namespace
}  // namespace iridium::test
