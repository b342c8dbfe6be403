// Teams that fail on the device: who is named, and what still works.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "device/rank_kernels.h"
#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

constexpr std::chrono::milliseconds timeout{1500};
/// Of tests in which a rank stays away until the waits of the others have expired: the others' next
/// wait for it begins then.
constexpr std::chrono::milliseconds long_timeout{2000};

/// For the one who stays away, and for the others behind their waits: a host's call of a team that
/// does nothing else.
void await_expired_waits(Team& meetings) {
  meetings.all_gather(0, 10);
}

class DeviceFaultTest : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, DeviceFaultTest, testing::ValuesIn(both_kinds(4)),
                         [](const auto& test) { return name(test.param); });

void require_names(const Error& error, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    require(std::string(error.what()).find(part) != std::string::npos,
            std::string(error.what()) + " lacks " + part);
}

void require_works(Context& context, const Team& team) {
  Stream stream = context.make_stream();
  for (int i = 0; i < 20; ++i) device_barrier(stream, team);
  stream.synchronize();
  team.check();
}

IR_SCENARIO(stays_away) {
  Context context(job, {.timeout = long_timeout});
  Team meetings = context.make_team(context.world().ranks());
  Team team = context.make_team(context.world().ranks(), {.name = "slow"});
  Stream stream = context.make_stream();
  device_barrier(stream, team);
  stream.synchronize();
  if (job.rank == 2) await_expired_waits(meetings);
  for (int i = 0; i < 3; ++i) {
    // The others may learn of it while they still submit.
    try {
      device_barrier(stream, team);
    } catch (const Error&) {
      break;
    }
  }
  stream.synchronize();
  if (job.rank != 2) await_expired_waits(meetings);
  const Error error = require_error(Errc::timeout, {2}, [&] { team.check(); });
  require_names(error, {"rank 2 did not arrive", "device_barrier", "team slow", "step 1"});
  const Error again = require_error(Errc::timeout, {2}, [&] { device_barrier(stream, team); });
  require(std::string(error.what()) == again.what(), "the error stays the same");
  require_error(Errc::timeout, {2}, [&] { team.barrier(); });
  require_error(Errc::timeout, {2}, [&] { team.lane(); });
  // The stream, the context and new teams of the same ranks work.
  require_works(context, context.world());
  require_works(context, context.make_team(context.world().ranks()));
}
TEST_P(DeviceFaultTest, ARankThatStaysAwayIsNamedByAll) {
  expect_all_ok(run_ranks(GetParam().kind, "stays_away", 4));
}

IR_SCENARIO(stays_away_from_a_graph) {
  Context context(job, {.timeout = long_timeout});
  Team meetings = context.make_team(context.world().ranks());
  Team team = context.make_team(context.world().ranks(), {.name = "slow"});
  Stream stream = context.make_stream();
  stream.begin_capture();
  for (int i = 0; i < 100; ++i) device_barrier(stream, team);
  const Graph graph = stream.end_capture();
  stream.launch(graph);
  stream.synchronize();
  team.check();
  if (job.rank == 1) await_expired_waits(meetings);
  const auto start = std::chrono::steady_clock::now();
  stream.launch(graph);
  stream.synchronize();
  require(std::chrono::steady_clock::now() - start < 10 * long_timeout,
          "one wait expired, and the other 99 nodes returned at once");
  if (job.rank != 1) await_expired_waits(meetings);
  const Error error = require_error(Errc::timeout, {1}, [&] { team.check(); });
  require_names(error, {"rank 1 did not arrive", "device_barrier", "step 100"});
  require_works(context, context.make_team(context.world().ranks()));
}
TEST_P(DeviceFaultTest, ARankThatStaysAwayFromAGraphIsNamedByAll) {
  expect_all_ok(run_ranks(GetParam().kind, "stays_away_from_a_graph", 4));
}

IR_SCENARIO(signal_never_comes) {
  Context context(job, {.timeout = timeout});
  Team team = context.make_team({0, 3});
  auto flags = context.allocate<std::uint32_t>(2);
  Memory(context).write(flags, {5, 5});
  context.barrier();
  Stream stream = context.make_stream();
  if (job.rank == 0) {
    wait(stream, team, flags.data(), 6, {.from = 1});
    stream.synchronize();
    const Error error = require_error(Errc::timeout, {3}, [&] { team.check(); });
    require_names(error, {"rank 3", "in wait", "expected 6, found 5"});
  } else {
    std::this_thread::sleep_for(timeout / 2);
  }
  context.barrier();
}
TEST_P(DeviceFaultTest, ASignalThatNeverComesNamesItsSender) {
  expect_all_ok(run_ranks(GetParam().kind, "signal_never_comes", 4));
}

IR_SCENARIO(two_calls_at_once) {
  Context context(job, {.timeout = std::chrono::seconds(20)});
  prepare_kernels(context);
  Team team = context.make_team(context.world().ranks(), {.name = "shared"});
  Stream one = context.make_stream();
  Stream other = context.make_stream();
  launch_hold_lane(context, one, team.lane("hold"), 2, std::chrono::milliseconds(300));
  launch_delay(context, other, std::chrono::milliseconds(100));
  launch_hold_lane(context, other, team.lane("hold"), 1, std::chrono::milliseconds(1));
  one.synchronize();
  other.synchronize();
  const Error error = require_error(Errc::lane_busy, {}, [&] { team.check(); });
  require_names(error, {"two operations of team shared", "hold"});
  require_works(context, context.world());
}
TEST_P(DeviceFaultTest, TwoCallsAtOnceOnALaneAreAnError) {
  expect_all_ok(run_ranks(GetParam().kind, "two_calls_at_once", 4));
}

IR_SCENARIO(grid_over_the_lane) {
  Context context(job);
  prepare_kernels(context);
  Team team = context.make_team(context.world().ranks(), {.max_blocks = 2});
  Stream stream = context.make_stream();
  const Error error = require_error(Errc::invalid_argument, {}, [&] {
    launch_hold_lane(context, stream, team.lane("wide"), 3, std::chrono::milliseconds(0));
    stream.synchronize();
    team.check();
  });
  require_names(error, {"3 blocks", "wide", "the limit is 2"});
}
TEST_P(DeviceFaultTest, AGridLargerThanTheLaneIsAnError) {
  expect_all_ok(run_ranks(GetParam().kind, "grid_over_the_lane", 4));
}

IR_SCENARIO(dies_before_a_barrier) {
  Context context(job, {.timeout = std::chrono::seconds(60)});
  Team team = context.make_team(context.world().ranks());
  Team survivors = context.make_team({0, 2, 3});
  Stream stream = context.make_stream();
  context.barrier();
  if (job.rank == 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ::kill(::getpid(), SIGKILL);
  }
  device_barrier(stream, team);
  stream.synchronize();
  require_error(Errc::peer_lost, {1}, [&] { team.check(); });
  require_works(context, survivors);
}
TEST(DeviceFaults, ADeadRankEndsWaitsSoon) {
  auto results = run_ranks(RankKind::processes, "dies_before_a_barrier", 4);
  EXPECT_EQ(results[1].signal, SIGKILL);
  for (const std::size_t rank : {0u, 2u, 3u})
    EXPECT_LT(results[rank].ended - results[1].ended, std::chrono::seconds(10));
  results[1] = {};
  expect_all_ok(results);
}

IR_SCENARIO(leaves_before_a_barrier) {
  auto context = std::make_unique<Context>(job, ContextOptions{.timeout = timeout});
  Team team = context->world();
  context->barrier();
  if (job.rank == 1) {
    context.reset();
    // A process that ends would be lost, not gone.
    std::this_thread::sleep_for(2 * timeout);
    return;
  }
  std::this_thread::sleep_for(timeout / 5);
  Stream stream = context->make_stream();
  device_barrier(stream, team);
  stream.synchronize();
  require_error(Errc::peer_left, {1}, [&] { team.check(); });
}
TEST_P(DeviceFaultTest, ARankThatHasLeftIsNamed) {
  expect_all_ok(run_ranks(GetParam().kind, "leaves_before_a_barrier", 3));
}

IR_SCENARIO(ends_with_work_queued) {
  Context context(job, {.timeout = std::chrono::seconds(60)});
  Team team = context.make_team(context.world().ranks());
  Team survivors = context.make_team({0, 2});
  auto flags = context.allocate<std::uint32_t>(1);
  Stream stream = context.make_stream();
  context.barrier();
  if (job.rank == 1) {
    wait(stream, team, flags.data(), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return;
  }
  const Error error = require_error(Errc::peer_lost, {1}, [&] {
    device_barrier(stream, team);
    stream.synchronize();
    team.check();
  });
  require_names(error, {"lost rank 1", "ended before the work that it had queued"});
  require_works(context, survivors);
}

IR_SCENARIO(makes_a_context) {
  Context context(job);
}
/// Under MPS the end of a process whose kernels run fails the contexts that others make right then.
bool contexts_can_be_made_again() {
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (run_ranks(RankKind::processes, "makes_a_context", 1)[0].ok()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

TEST(DeviceFaults, ARankThatEndsWithWorkQueuedIsLostAtOnce) {
  const auto results = run_ranks(RankKind::processes, "ends_with_work_queued", 3);
  EXPECT_TRUE(contexts_can_be_made_again());
  expect_all_ok(results);
  // The others' waits ended by the news of its end: their timeout is a minute away.
  for (const std::size_t rank : {0u, 2u})
    EXPECT_LT(results[rank].ended - results[1].ended, std::chrono::seconds(10));
}

IR_SCENARIO(leaves_with_work_queued) {
  auto context = std::make_unique<Context>(job, ContextOptions{.timeout = 5 * timeout});
  prepare_kernels(*context);
  Team team = context->world();
  Stream stream = context->make_stream();
  context->barrier();
  if (job.rank == 0) launch_delay(*context, stream, timeout);
  for (int i = 0; i < 10; ++i) device_barrier(stream, team);
  // What it has queued still runs, and its peers hear from it.
  if (job.rank == 0) context.reset();
  stream.synchronize();
  if (job.rank != 0) team.check();
}
TEST_P(DeviceFaultTest, WorkQueuedBeforeARankLeavesIsStillDone) {
  expect_all_ok(run_ranks(GetParam().kind, "leaves_with_work_queued", 3));
}

}  // namespace
}  // namespace iridium::test
