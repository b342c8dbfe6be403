// The collectives' kernels under thousands of drawn schedules. A failure names its seed; the same
// seed fails again.
#include <gtest/gtest.h>

#include "collectives/all_reduce/packet_two_shot.h"
#include "collectives/simulated_calls.h"
#include "support/sanitizers.h"

namespace iridium::test {
namespace {

/// Sanitizers make every turn slower.
constexpr std::uint64_t scale(std::uint64_t seeds) {
  return under_thread_sanitizer ? seeds / 20 + 1 : seeds;
}

struct Setup {
  int ranks;
  bool split;
};

std::string run_sequence(const Setup& setup, std::uint64_t seed, const SequenceLimits& wanted,
                         std::uint32_t first_counter = 0) {
  SequenceLimits limits = wanted;
  limits.ranks = setup.ranks;
  const SimulatedSequence sequence(limits, seed);
  SimulationOptions options;
  options.ranks = setup.ranks;
  options.split = setup.split;
  options.seed = seed;
  options.lane.max_blocks = limits.max_blocks;
  options.data_bytes = sequence.elements() * sizeof(std::uint32_t);
  options.first_step = first_counter;
  options.first_counter = first_counter;
  Simulation simulation(options);
  sequence.launch(simulation);
  simulation.run();
  return sequence.compare(simulation);
}

class SimulatedCollectives : public testing::TestWithParam<Setup> {};
INSTANTIATE_TEST_SUITE_P(, SimulatedCollectives,
                         testing::Values(Setup{1, false}, Setup{2, false}, Setup{3, false},
                                         Setup{5, false}, Setup{2, true}, Setup{3, true}),
                         [](const auto& test) {
                           return std::to_string(test.param.ranks) + "_ranks" +
                                  (test.param.split ? "_split" : "");
                         });

TEST_P(SimulatedCollectives, EachAloneIsRight) {
  for (int form = 0; form < form_count; ++form)
    for (std::uint64_t seed = 1; seed <= scale(20); ++seed)
      ASSERT_EQ(run_sequence(GetParam(), seed, {.calls = 4, .forms = {static_cast<Form>(form)}}),
                "")
          << "form " << form << ", seed " << seed;
}

TEST_P(SimulatedCollectives, MixedOnOneLaneAreRight) {
  for (std::uint64_t seed = 1; seed <= scale(GetParam().split ? 150 : 300); ++seed)
    ASSERT_EQ(run_sequence(GetParam(), seed, {}), "") << "seed " << seed;
}

TEST_P(SimulatedCollectives, AreRightWhereCountersWrapAround) {
  for (const std::uint32_t first : {0x7ffffffbu, 0x7fffffffu, 0xfffffff5u, 0xfffffffeu})
    for (std::uint64_t seed = 1; seed <= scale(40); ++seed)
      ASSERT_EQ(run_sequence(GetParam(), seed, {.calls = 8}, first), "")
          << "seed " << seed << ", from " << first;
}

TEST(SimulatedPacketTwoShot, SendsNoResultWhereAPacketIsMissing) {
  Simulation simulation({.ranks = 3, .timeout_turns = 20'000});
  constexpr std::uint32_t words = 2;  // of a shard
  constexpr std::size_t count = 3 * words * sizeof(Packet) / sizeof(std::uint32_t);
  for (const int rank : {0, 1}) {
    std::uint32_t* const data = simulation.data(rank);
    simulation.launch(rank, 1,
                      PacketTwoShotAllReduce<std::uint32_t>{simulation.lane(rank),
                                                            data,
                                                            data + count,
                                                            count,
                                                            {.words = words, .part = words},
                                                            ReduceOp::sum});
  }
  simulation.run();
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(simulation.fault(rank).has_value());
    EXPECT_EQ(simulation.fault(rank)->missing, 0b100u);
    const target::Pair* const shards = simulation.lane(rank).packets(0, 1 - rank);
    for (std::uint32_t word = 0; word < words; ++word) {
      EXPECT_NE(shards[word].first >> 32, 0u);
      EXPECT_EQ(shards[words + word].first >> 32, 0u) << "a result without rank 2's part";
    }
  }
}

}  // namespace
}  // namespace iridium::test
