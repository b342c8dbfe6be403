// Lanes of real ranks: threads and processes on the CPU, processes on a GPU.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/plans.h"
#include "device/rank_kernels.h"
#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

constexpr int max_blocks = 3;

/// A plan's data on a real team.
class PlanRun {
 public:
  PlanRun(Context& context, const Team& team, std::uint64_t plan_seed, int calls = 12)
      : context_(context),
        team_(team),
        memory_(context),
        plan_({.ranks = team.size(), .calls = calls, .max_blocks = max_blocks, .max_count = 500},
              plan_seed),
        data_(context.allocate<std::uint32_t>(plan_.elements())) {}

  /// Local: before the first launch all members must have done it.
  void set(std::uint64_t seed) { memory_.write(data_, plan_.data_before(team_.rank(), seed)); }
  void launch(StreamRef& stream) {
    for (const PlannedCall& call : plan_.calls())
      launch_call(context_, stream, team_.lane("plan"), call, data_.data());
  }
  void check(std::uint64_t seed) {
    team_.check();
    const std::string difference = plan_.compare(memory_.read(data_), seed);
    require(difference.empty(), "seed " + std::to_string(seed) + ": " + difference);
  }

 private:
  Context& context_;
  Team team_;
  Memory memory_;
  Plan plan_;
  SymmetricArray<std::uint32_t> data_;
};

/// Eager runs, replays of a captured run with changed data, and both in turns.
void run_plans(Context& context, const std::vector<std::uint64_t>& plan_seeds) {
  Team team = context.world();
  Stream stream = context.make_stream();
  for (const std::uint64_t plan_seed : plan_seeds) {
    PlanRun run(context, team, plan_seed);
    stream.begin_capture();
    run.launch(stream);
    const Graph graph = stream.end_capture();
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      run.set(seed);
      context.barrier();
      if (seed % 2 == 0)
        stream.launch(graph);
      else
        run.launch(stream);
      stream.synchronize();
      run.check(seed);
      context.barrier();
    }
  }
}

class LaneTest : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, LaneTest, testing::ValuesIn(all_ranks()),
                         [](const auto& test) { return name(test.param); });

IR_SCENARIO(random_calls) {
  Context context(job);
  prepare_kernels(context);
  run_plans(context, {1, 2, 3, 4, 5});
}
TEST_P(LaneTest, RandomCallsAreRightEagerAndReplayed) {
  expect_all_ok(run_ranks(GetParam().kind, "random_calls", GetParam().size));
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

IR_SCENARIO(counters_wrap_around) {
  Context context(job);
  prepare_kernels(context);
  for (const std::uint32_t value : {0x7ffffff0u, 0xfffffff5u, 0xffffffffu}) {
    Team team = context.make_team(context.world().ranks(), {.max_blocks = max_blocks});
    set_counters(context, team, value);
    PlanRun run(context, team, value);
    Stream stream = context.make_stream();
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      run.set(seed);
      context.barrier();
      run.launch(stream);
      stream.synchronize();
      run.check(seed);
      context.barrier();
    }
  }
}
TEST_P(LaneTest, CountersWrapAround) {
  expect_all_ok(run_ranks(GetParam().kind, "counters_wrap_around", GetParam().size));
}

IR_SCENARIO(overlapping_teams) {
  Context context(job);
  prepare_kernels(context);
  const std::vector<std::vector<int>> lists = {{0, 1, 2, 3}, {3, 0, 1}, {2, 0}};
  std::vector<Team> teams;
  for (const auto& list : lists) teams.push_back(context.make_team(list));
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    std::vector<PlanRun> runs;
    std::vector<Stream> streams;
    // Allocating is for all ranks, also for those that are not in the team.
    for (const Team& team : teams) runs.emplace_back(context, team, seed);
    for (std::size_t i = 0; i < teams.size(); ++i) {
      streams.push_back(context.make_stream());
      if (teams[i].is_member()) runs[i].set(seed);
    }
    context.barrier();
    for (std::size_t i = 0; i < teams.size(); ++i)
      if (teams[i].is_member()) runs[i].launch(streams[i]);
    for (std::size_t i = 0; i < teams.size(); ++i) {
      if (!teams[i].is_member()) continue;
      streams[i].synchronize();
      runs[i].check(seed);
    }
    context.barrier();
  }
}
class FourRanks : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, FourRanks, testing::ValuesIn(both_kinds(4)),
                         [](const auto& test) { return name(test.param); });
TEST_P(FourRanks, LanesOfOverlappingTeamsWorkAtOnce) {
  expect_all_ok(run_ranks(GetParam().kind, "overlapping_teams", 4));
}

IR_SCENARIO(drawn_schedules) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    for (const bool split : {false, true}) {
      Context context(job, {.backend = BackendKind::host,
                            .split_blocks = split,
                            .schedule_seed = seed,
                            .name = "drawn" + std::to_string(seed) + (split ? "split" : "")});
      run_plans(context, {seed});
    }
}
class HostLanes : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, HostLanes, testing::ValuesIn(both_kinds(3)),
                         [](const auto& test) { return name(test.param); });
TEST_P(HostLanes, WorkUnderDrawnSchedulesAndInSplitMode) {
  expect_all_ok(run_ranks(GetParam().kind, "drawn_schedules", 3));
}

IR_SCENARIO(passes_tiles) {
  Context context(job);
  prepare_kernels(context);
  Team team = context.world();
  auto data = context.allocate<std::uint32_t>(128);
  Memory memory(context);
  Stream stream = context.make_stream();
  for (const std::uint32_t first : {0u, 0x7ffffff0u, 0xfffffff0u}) {
    memory.write(data, std::vector<std::uint32_t>(128, first));
    context.barrier();
    launch_pass_tiles(context, stream, team.lane("pass_tiles"), data.data(), first, 200);
    stream.synchronize();
    team.check();
    require(memory.read(data.data() + 2) == 0, "every tile was whole when it was announced");
    context.barrier();
  }
}
class TwoRanks : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, TwoRanks, testing::ValuesIn(both_kinds(2)),
                         [](const auto& test) { return name(test.param); });
TEST_P(TwoRanks, PassMessages) {
  expect_all_ok(run_ranks(GetParam().kind, "passes_tiles", 2));
}

}  // namespace
}  // namespace iridium::test
