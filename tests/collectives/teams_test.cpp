// Random sequences of calls on teams of every kind, eager and replayed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

#include "collectives/sequences.h"
#include "support/memory.h"
#include "support/ranks.h"
#include "support/sanitizers.h"

namespace iridium::test {
namespace {

constexpr int sequences = under_thread_sanitizer ? 2 : 5;

/// Every rank calls this; those that are not in the team only help to allocate.
void run_sequence(Context& context, const Team& team, std::uint64_t plan) {
  Sequence sequence(context, team, drawn_calls(team.size(), plan, 8));
  if (!team.is_member()) return;
  Stream stream = context.make_stream();
  stream.begin_capture();
  sequence.launch(stream);
  const Graph graph = stream.end_capture();
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    sequence.set(stream, seed * 100);
    if (seed % 2 == 0)
      stream.launch(graph);
    else
      sequence.launch(stream);
    sequence.fetch(stream);
  }
  stream.synchronize();
  sequence.check();
}

IR_SCENARIO(drawn_sequences) {
  Context context(job);
  const Team narrow = context.make_team(context.world().ranks(), narrow_lane);
  for (std::uint64_t plan = 1; plan <= sequences; ++plan) {
    run_sequence(context, context.world(), plan);
    run_sequence(context, narrow, plan + 1000);
  }
}
class Sequences : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(, Sequences, testing::ValuesIn(all_ranks()),
                         [](const auto& test) { return name(test.param); });
TEST_P(Sequences, AreRightEagerAndReplayed) {
  expect_all_ok(run_ranks(GetParam().kind, "drawn_sequences", GetParam().size));
}

const std::vector<std::vector<int>> lists = {{3, 2, 1, 0}, {2, 0, 3}, {1, 3}, {0}, {0, 3, 1}};

IR_SCENARIO(teams_in_any_order) {
  Context context(job);
  for (std::size_t i = 0; i < lists.size(); ++i)
    run_sequence(context, context.make_team(lists[i], narrow_lane), 50 + i);
}

IR_SCENARIO(teams_at_once) {
  Context context(job);
  std::vector<Team> teams;
  for (const auto& list : lists) teams.push_back(context.make_team(list, narrow_lane));
  for (std::uint64_t plan = 1; plan <= sequences; ++plan) {
    std::vector<Sequence> all;
    std::vector<Stream> streams;
    for (std::size_t i = 0; i < teams.size(); ++i) {
      all.emplace_back(context, teams[i], drawn_calls(teams[i].size(), plan * 10 + i, 6));
      streams.push_back(context.make_stream());
    }
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
      for (std::size_t i = 0; i < teams.size(); ++i) {
        if (!teams[i].is_member()) continue;
        all[i].set(streams[i], seed * 100);
        all[i].launch(streams[i]);
        all[i].fetch(streams[i]);
      }
    for (std::size_t i = 0; i < teams.size(); ++i) {
      if (!teams[i].is_member()) continue;
      streams[i].synchronize();
      all[i].check();
    }
  }
}

class Teams : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(, Teams, testing::ValuesIn(both_kinds(4)),
                         [](const auto& test) { return name(test.param); });
TEST_P(Teams, InAnyOrderAreRight) {
  expect_all_ok(run_ranks(GetParam().kind, "teams_in_any_order", 4));
}
TEST_P(Teams, ThatOverlapWorkAtOnce) {
  expect_all_ok(run_ranks(GetParam().kind, "teams_at_once", 4));
}

IR_SCENARIO(teams_one_after_another) {
  Context context(job);
  const int late = job.size - 1;
  constexpr std::size_t count = 40;
  const SymmetricArray<std::int32_t> in = context.allocate<std::int32_t>(count);
  const SymmetricArray<std::int32_t> out = context.allocate<std::int32_t>(count);
  Memory memory(context);
  const LaneState* first_lane = nullptr;
  for (int round = 0; round < 3; ++round) {
    const Team team = context.make_team(context.world().ranks(), narrow_lane);
    const LaneState* const lane = team.lane().state();
    if (round == 0) first_lane = lane;
    require(lane == first_lane, "the team's lane lies where the one before it lay");
    memory.write(in, std::vector<std::int32_t>(count, 1 + round + 10 * job.rank));
    context.barrier();
    // By now the others would have taken what the late one sent in the round before.
    if (job.rank == late) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    Stream stream = context.make_stream();
    // Packets of both parities.
    for (int call = 0; call < 2; ++call) {
      all_reduce(stream, team, out.data(), in.data(), count,
                 {.algorithm = AllReduceAlgorithm::packet});
      stream.synchronize();
      const std::int32_t sum = job.size * (1 + round) + 5 * job.size * (job.size - 1);
      require(memory.read(out) == std::vector<std::int32_t>(count, sum),
              fmt::format("round {}, call {}", round, call));
    }
  }
}
TEST_P(Teams, InMemoryOfEarlierOnesHearNothingOfThem) {
  expect_all_ok(run_ranks(GetParam().kind, "teams_one_after_another", 3));
}

/// Makes a lane look as if it had been used for long.
void set_counters(Context& context, const Team& team, std::uint32_t value) {
  Memory memory(context);
  const Lane lane = team.lane();
  memory.write(&lane.state()->calls, std::uint64_t{value} << 32);
  for (int block = 0; block < lane.max_blocks(); ++block) {
    memory.write(&lane.block(block).counter, std::uint64_t{value});
    for (int source = 0; source < team.size(); ++source)
      memory.write(&lane.block(block).flags[source], value);
  }
  context.barrier();
}

IR_SCENARIO(collectives_wrap_around) {
  Context context(job);
  TeamOptions options = narrow_lane;
  options.max_blocks = 4;
  for (const std::uint32_t value : {0x7ffffff0u, 0xfffffff5u, 0xffffffffu}) {
    const Team team = context.make_team(context.world().ranks(), options);
    set_counters(context, team, value);
    run_sequence(context, team, value);
  }
}
TEST_P(Teams, CountersWrapAround) {
  expect_all_ok(run_ranks(GetParam().kind, "collectives_wrap_around", 3));
}

}  // namespace
}  // namespace iridium::test
