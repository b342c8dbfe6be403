// Every registered operation: eager, captured, replayed with changed data, and mixed.
#include "iridium/operations.h"

#include <gtest/gtest.h>

#include <set>

#include "iridium/device_barrier.h"
#include "iridium/signals.h"
#include "support/links.h"
#include "support/memory.h"
#include "support/ranks.h"
#include "support/sampling.h"

namespace iridium::test {
namespace {

class OperationTest : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, OperationTest, testing::ValuesIn(all_ranks()),
                         [](const auto& test) { return name(test.param); });

void require_right(OperationCase& operation, const std::string& what, std::uint64_t seed) {
  const std::string difference = operation.check(seed);
  require(difference.empty(), what + ", seed " + std::to_string(seed) + ": " + difference);
}

/// Every member of `team` calls this; others only help to allocate.
void run_operation(Context& context, const Team& team, const Operation& operation,
                   const Arguments& arguments) {
  const auto prepared = prepare_or_refuse(context, team, operation, arguments);
  if (!prepared) return;
  Stream stream = context.make_stream();
  // A library that is opened on demand prepares itself, which no capture can hold.
  if (depends_on_device(operation, arguments)) {
    prepared->launch(stream);
    stream.synchronize();
  }
  if (team.is_member()) {
    stream.begin_capture();
    prepared->launch(stream);
    prepared->launch(stream);
  }
  std::optional<Graph> graph;
  if (team.is_member()) graph = stream.end_capture();
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    if (team.is_member()) prepared->set_inputs(seed);
    context.barrier();
    if (team.is_member()) {
      if (seed % 3 != 0) prepared->launch(stream);
      if (seed % 3 != 1) stream.launch(*graph);
      stream.synchronize();
      team.check();
      require_right(*prepared, operation.name, seed);
    }
    context.barrier();
  }
}

IR_SCENARIO(registered_operations) {
  Context context(job);
  std::vector<int> backwards(context.world().ranks().rbegin(), context.world().ranks().rend());
  std::vector<Team> teams = {context.world(), context.make_team(backwards)};
  if (job.size >= 4) teams.push_back(context.make_team({3, 0, 1}));
  Sample sample(job.size);
  for (const auto* list : {&operations(), &copy_limits()})
    for (const Operation& operation : *list)
      for (const Team& team : teams)
        for (const Arguments& arguments : combinations(operation))
          if (sample.takes_next()) run_operation(context, team, operation, arguments);
}
TEST_P(OperationTest, AreRightEagerCapturedAndMixed) {
  expect_all_ok(run_ranks(GetParam().kind, "registered_operations", GetParam().size));
}

TEST(Operations, HaveAllCombinationsOfTheirValues) {
  Operation operation;
  EXPECT_EQ(combinations(operation), std::vector<Arguments>{{}});
  operation.parameters = {{"a", {"1", "2"}}, {"b", {"x", "y", "z"}}};
  const std::vector<Arguments> all = combinations(operation);
  EXPECT_EQ(all.size(), 6u);
  EXPECT_EQ(std::set<Arguments>(all.begin(), all.end()).size(), 6u);
  EXPECT_EQ(all.front(), (Arguments{{"a", "1"}, {"b", "x"}}));
}

TEST(Operations, HaveNamesSummariesAndDefaults) {
  std::set<std::string> names;
  std::vector<Operation> all;
  for (const auto* list : {&operations(), &copy_limits(), &host_calls()})
    all.insert(all.end(), list->begin(), list->end());
  for (const Operation& operation : all) {
    EXPECT_TRUE(names.insert(operation.name).second) << operation.name << " stands twice";
    EXPECT_FALSE(operation.summary.empty());
    for (const Parameter& parameter : operation.parameters) EXPECT_FALSE(parameter.values.empty());
  }
  EXPECT_TRUE(names.contains("device_barrier"));
}

IR_SCENARIO(arguments_nobody_knows) {
  Context context(job);
  for (const auto* list : {&operations(), &copy_limits(), &host_calls()})
    for (const Operation& operation : *list) {
      const auto prepare = [&](const Arguments& arguments) {
        operation.prepare(context, context.world(), arguments);
      };
      require_error(Errc::invalid_argument, {}, [&] { prepare({{"colour", "red"}}); });
      for (const Parameter& parameter : operation.parameters)
        for (const char* value : {"0", "-1", "many", ""})
          require_error(Errc::invalid_argument, {}, [&] { prepare({{parameter.name, value}}); });
    }
  for (const Operation& operation : copy_limits())
    require_error(Errc::invalid_argument, {},
                  [&] { operation.prepare(context, context.world(), {{"bytes", "5"}}); });
}
TEST(Operations, RefuseArgumentsTheyDoNotKnow) {
  expect_all_ok(run_ranks(RankKind::processes, "arguments_nobody_knows", 1));
}

IR_SCENARIO(operations_without_atomics) {
  Context context(job, {.link = Link::pcie});
  const Team team = context.world();
  Stream stream = context.make_stream();
  const auto flags = context.allocate<std::uint32_t>(static_cast<std::size_t>(job.size));
  std::uint32_t* const flag = flags.data();
  const auto refused = [&](const std::string& what, const std::function<void()>& call) {
    const std::string message = require_error(Errc::unsupported, {}, call).what();
    require(message.find(what) != std::string::npos && message.find("pcie") != std::string::npos,
            message);
  };
  refused("signal with add", [&] { signal(stream, team, flag, 0, 1, SignalOp::add); });
  refused("signal_all with add", [&] { signal_all(stream, team, flag, 1, SignalOp::add); });
  refused("put_signal with add",
          [&] { put_signal(stream, team, flag, flag, 4, 0, flag, 1, SignalOp::add); });
  for (const Operation& operation : operations())
    for (const Arguments& arguments : combinations(operation))
      if (needs_native_atomics(operation, arguments) || operation.name == "put_signal")
        run_operation(context, team, operation, arguments);
}
TEST(Operations, ThatUpdatePeersAtomicallyAreRefusedWhereTheLinkCannot) {
  expect_all_ok(run_ranks(RankKind::processes, "operations_without_atomics", 2));
}

/// `barriers` barriers between writing and reading; two buffers, so that one barrier is enough.
void write_meet_read(Context& context, StreamRef& stream, int barriers,
                     const SymmetricArray<std::uint32_t>& input,
                     const SymmetricArray<std::uint32_t>& shared,
                     const SymmetricArray<std::uint32_t>& output) {
  for (std::size_t side = 0; side < 2; ++side) {
    stream.copy(shared.data() + side, input.data() + side, sizeof(std::uint32_t));
    for (int i = 0; i < barriers; ++i) device_barrier(stream, context.world());
    for (int rank = 0; rank < context.size(); ++rank)
      stream.copy(output.data() + 2 * static_cast<std::size_t>(rank) + side, shared.at(rank) + side,
                  sizeof(std::uint32_t));
  }
}

IR_SCENARIO(barriers_in_a_row) {
  Context context(job);
  Memory memory(context);
  Stream stream = context.make_stream();
  const auto ranks = static_cast<std::size_t>(job.size);
  auto input = context.allocate<std::uint32_t>(2);
  auto shared = context.allocate<std::uint32_t>(2);
  auto output = context.allocate<std::uint32_t>(2 * ranks);
  for (const int barriers : {1, 2, 4}) {
    stream.begin_capture();
    write_meet_read(context, stream, barriers, input, shared, output);
    const Graph graph = stream.end_capture();
    for (std::uint32_t round = 1; round <= 30; ++round) {
      const auto value = [&](std::size_t rank, std::size_t side) {
        return round * 1000 + static_cast<std::uint32_t>(rank * 2 + side);
      };
      const auto me = static_cast<std::size_t>(job.rank);
      memory.write(input, {value(me, 0), value(me, 1)});
      if (round % 3 == 0)
        write_meet_read(context, stream, barriers, input, shared, output);
      else
        stream.launch(graph);
      stream.synchronize();
      context.world().check();
      const auto found = memory.read(output);
      for (std::size_t rank = 0; rank < ranks; ++rank)
        for (std::size_t side = 0; side < 2; ++side)
          require(found[2 * rank + side] == value(rank, side), "what was written before is seen");
    }
  }
}
TEST_P(OperationTest, BarriersInARowOrderChangingData) {
  expect_all_ok(run_ranks(GetParam().kind, "barriers_in_a_row", GetParam().size));
}

IR_SCENARIO(bad_signals) {
  Context context(job);
  Team team = context.world();
  Team other = context.make_team({1});
  Stream stream = context.make_stream();
  auto flags = context.allocate<std::uint32_t>(2);
  std::uint32_t elsewhere = 0;
  const auto refused = [](const std::function<void()>& call) {
    require_error(Errc::invalid_argument, {}, call);
  };
  refused([&] { signal(stream, team, &elsewhere, 0, 1); });
  refused([&] { signal(stream, team, nullptr, 0, 1); });
  refused([&] { signal(stream, team, flags.data(), 2, 1); });
  refused([&] { signal(stream, team, flags.data(), -1, 1); });
  refused([&] { wait(stream, team, &elsewhere, 1); });
  refused([&] { wait(stream, team, flags.data(), 1, {.from = 2}); });
  refused([&] { signal_all(stream, team, flags.data() + 1, 1); });
  refused([&] { wait_all(stream, team, flags.data() + 1, 1); });
  auto bytes = context.allocate<std::uint8_t>(64);
  auto* const odd = reinterpret_cast<std::uint32_t*>(bytes.data() + 2);
  refused([&] { signal(stream, team, odd, 0, 1); });
  refused([&] { wait(stream, team, odd, 1); });
  refused([&] { signal_all(stream, team, odd, 1); });
  refused([&] { wait_all(stream, team, odd, 1); });
  refused([&] { put_signal(stream, team, flags.data(), flags.data(), 4, 0, odd, 1); });
  refused([&] { put_signal(stream, team, flags.data(), nullptr, 4, 0, flags.data(), 1); });
  refused([&] { put_signal(stream, team, &elsewhere, &elsewhere, 4, 0, flags.data(), 1); });
  if (job.rank == 0) {
    require_error(Errc::not_a_member, {}, [&] { device_barrier(stream, other); });
    require_error(Errc::not_a_member, {}, [&] { other.lane(); });
    require_error(Errc::not_a_member, {}, [&] { other.check(); });
  }
  stream.synchronize();
  device_barrier(stream, team);
  stream.synchronize();
  team.check();
}
TEST(Signals, RefuseWhatCannotWork) {
  expect_all_ok(run_ranks(RankKind::processes, "bad_signals", 2));
}

IR_SCENARIO(graph_outlives_its_team) {
  Context context(job);
  Stream stream = context.make_stream();
  std::optional<Graph> graph;
  {
    Team team = context.make_team(context.world().ranks());
    stream.begin_capture();
    for (int i = 0; i < 10; ++i) device_barrier(stream, team);
    graph = stream.end_capture();
  }
  // Would take the lane's memory if it were free.
  Team another = context.make_team(context.world().ranks());
  for (int i = 0; i < 5; ++i) {
    stream.launch(*graph);
    device_barrier(stream, another);
  }
  stream.synchronize();
  another.check();
}
TEST_P(OperationTest, AGraphKeepsItsTeamAlive) {
  expect_all_ok(run_ranks(GetParam().kind, "graph_outlives_its_team", GetParam().size));
}

IR_SCENARIO(team_goes_with_work_queued) {
  Context context(job);
  Stream stream = context.make_stream();
  for (int i = 0; i < 20; ++i) {
    Team team = context.make_team(context.world().ranks());
    for (int k = 0; k < 10; ++k) device_barrier(stream, team);
  }
  stream.synchronize();
  context.world().check();
}
TEST_P(OperationTest, ATeamMayGoWhileItsWorkIsQueued) {
  expect_all_ok(run_ranks(GetParam().kind, "team_goes_with_work_queued", GetParam().size));
}

}  // namespace
}  // namespace iridium::test
