// Lanes under thousands of drawn schedules. A failure names its seed; the same seed fails again.
#include "support/simulation.h"

#include <gtest/gtest.h>

#include <cstring>

#include "device/plans.h"
#include "support/sanitizers.h"

namespace iridium::test {
namespace {

/// Sanitizers make every turn slower.
constexpr std::uint64_t scale(std::uint64_t seeds) {
  return under_thread_sanitizer ? seeds / 10 + 1 : seeds;
}

struct Setup {
  int ranks;
  bool split;
  Link link = Link::shared;
};

std::string run_plan(const Setup& setup, std::uint64_t seed, std::uint32_t first_counter = 0) {
  const Plan plan({.ranks = setup.ranks, .calls = 8, .max_blocks = 3, .max_count = 40}, seed);
  SimulationOptions options;
  options.ranks = setup.ranks;
  options.split = setup.split;
  options.link = setup.link;
  options.seed = seed;
  options.lane.max_blocks = 3;
  options.data_bytes = plan.elements() * sizeof(std::uint32_t);
  options.first_step = first_counter;
  options.first_counter = first_counter;
  Simulation simulation(options);
  for (int rank = 0; rank < setup.ranks; ++rank) {
    const auto before = plan.data_before(rank, seed);
    std::memcpy(simulation.data(rank), before.data(), before.size() * sizeof before[0]);
    for (const PlannedCall& call : plan.calls())
      with_kernel<LaneCall>(
          call, simulation.lane(rank), simulation.data(rank),
          [&](const auto& kernel) { simulation.launch(rank, call.blocks, kernel); });
  }
  simulation.run();
  for (int rank = 0; rank < setup.ranks; ++rank) {
    if (simulation.fault(rank)) return "a fault was raised";
    const std::uint32_t* data = simulation.data(rank);
    const std::string difference =
        plan.compare(std::vector<std::uint32_t>(data, data + plan.elements()), seed);
    if (!difference.empty()) return "rank " + std::to_string(rank) + ", " + difference;
  }
  return {};
}

class RandomCalls : public testing::TestWithParam<Setup> {};

TEST_P(RandomCalls, OnOneLaneAreRightUnderAnySchedule) {
  const std::uint64_t seeds = scale(GetParam().split ? 300 : 800);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    ASSERT_EQ(run_plan(GetParam(), seed), "") << "seed " << seed;
}

TEST_P(RandomCalls, AreRightWhereCountersWrapAround) {
  for (const std::uint32_t first :
       {0x7ffffffcu, 0x7ffffffeu, 0xfffffff8u, 0xfffffffeu, 0xffffffffu})
    for (std::uint64_t seed = 1; seed <= scale(40); ++seed)
      ASSERT_EQ(run_plan(GetParam(), seed, first), "") << "seed " << seed << ", from " << first;
}

INSTANTIATE_TEST_SUITE_P(, RandomCalls,
                         testing::Values(Setup{1, false}, Setup{2, false}, Setup{3, false},
                                         Setup{5, false}, Setup{2, true}, Setup{3, true},
                                         Setup{3, false, Link::pcie}, Setup{3, true, Link::pcie}),
                         [](const auto& test) {
                           return std::to_string(test.param.ranks) + "_ranks" +
                                  (test.param.split ? "_split" : "") +
                                  (has_native_atomics(test.param.link) ? "" : "_without_atomics");
                         });

TEST(Simulations, AreTheSameForTheSameSeed) {
  const auto turns = [](std::uint64_t seed) {
    SimulationOptions options;
    options.seed = seed;
    Simulation simulation(options);
    for (const int rank : {0, 1})
      simulation.launch(
          rank, 4,
          ManyBarriers<LaneCall>{simulation.lane(rank), {simulation.data(rank), 0, 0, 8, 5, 0}});
    simulation.run();
    return simulation.turns();
  };
  EXPECT_EQ(turns(7), turns(7));
  EXPECT_NE(turns(7), turns(8));
}

/// Every thread stores before `enter`, and reads behind it what another thread of the peer stored.
struct StoresBeforeEnter {
  Lane lane;
  std::uint32_t* data;  ///< `count` stored, `count` found

  static constexpr std::uint32_t count = 16;

  IR_DEVICE void operator()(BlockOf<64> block) const {
    const Peers& peers = lane.peers();
    for_part(block, {0, count},
             [&](std::uint32_t i) { data[i] = 100 + static_cast<std::uint32_t>(peers.rank()); });
    LaneCall call(lane, block);
    if (!call.enter()) return;
    const std::uint32_t* const theirs = peers.at(data, (peers.rank() + 1) % peers.size());
    for_part_reversed(block, {0, count}, [&](std::uint32_t i) { data[count + i] = theirs[i]; });
    call.leave();
  }
};

TEST(Simulations, WhatABlockStoresBeforeItEntersIsSeenBehindIt) {
  for (const bool split : {false, true})
    for (std::uint64_t seed = 1; seed <= scale(300); ++seed) {
      SimulationOptions options;
      options.ranks = 3;
      options.seed = seed;
      options.split = split;
      Simulation simulation(options);
      for (int rank = 0; rank < 3; ++rank)
        simulation.launch(rank, 1, StoresBeforeEnter{simulation.lane(rank), simulation.data(rank)});
      simulation.run();
      for (int rank = 0; rank < 3; ++rank)
        for (std::uint32_t i = 0; i < StoresBeforeEnter::count; ++i)
          ASSERT_EQ(simulation.data(rank)[StoresBeforeEnter::count + i],
                    100u + static_cast<std::uint32_t>((rank + 1) % 3))
              << "seed " << seed << (split ? ", split" : "") << ", rank " << rank << ", element "
              << i;
    }
}

TEST(Simulations, LanesOfOverlappingTeamsDoNotDisturbEachOther) {
  const std::vector<std::vector<int>> teams = {{0, 1, 2, 3}, {3, 0, 1}, {2, 1}};
  for (std::uint64_t seed = 1; seed <= scale(200); ++seed) {
    std::vector<Plan> plans;
    std::uint32_t elements = 0;
    for (const auto& team : teams) {
      plans.emplace_back(
          PlanLimits{
              .ranks = static_cast<int>(team.size()), .calls = 5, .max_blocks = 3, .max_count = 30},
          seed + plans.size() * 7919);
      elements += plans.back().elements();
    }
    SimulationOptions options;
    options.ranks = 4;
    options.seed = seed;
    options.data_bytes = elements * sizeof(std::uint32_t);
    Simulation simulation(options);
    simulation.make_team(teams[1]);
    simulation.make_team(teams[2]);
    std::uint32_t offset = 0;
    for (std::size_t team = 0; team < teams.size(); ++team) {
      for (std::size_t place = 0; place < teams[team].size(); ++place) {
        const int rank = teams[team][place];
        std::uint32_t* const data = simulation.data(rank) + offset;
        const auto before = plans[team].data_before(static_cast<int>(place), seed);
        std::memcpy(data, before.data(), before.size() * sizeof before[0]);
        for (const PlannedCall& call : plans[team].calls())
          with_kernel<LaneCall>(
              call, simulation.lane(rank, static_cast<int>(team)), data, [&](const auto& kernel) {
                simulation.launch(rank, call.blocks, kernel, static_cast<int>(team));
              });
      }
      offset += plans[team].elements();
    }
    simulation.run();
    offset = 0;
    for (std::size_t team = 0; team < teams.size(); ++team) {
      for (const int rank : teams[team]) {
        const std::uint32_t* data = simulation.data(rank) + offset;
        ASSERT_EQ(plans[team].compare(
                      std::vector<std::uint32_t>(data, data + plans[team].elements()), seed),
                  "")
            << "seed " << seed << ", team " << team << ", rank " << rank;
      }
      offset += plans[team].elements();
    }
  }
}

}  // namespace
}  // namespace iridium::test
