// Faults of host waits: who died, who left, who did not come.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <thread>

#include "support/ranks.h"

namespace iridium::test {
namespace {

constexpr std::chrono::milliseconds long_timeout{60'000};

IR_SCENARIO(killed_in_a_barrier) {
  Context context(job, {.timeout = long_timeout});
  Team survivors = context.make_team({0, 1, 3});
  context.barrier();
  if (job.rank == 2) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ::kill(::getpid(), SIGKILL);
  }
  const Error error = require_error(Errc::peer_lost, {2}, [&] { context.barrier(); });
  require(std::string(error.what()).find("lost rank 2 at barrier") != std::string::npos,
          error.what());
  require_error(Errc::peer_lost, {2}, [&] { context.barrier(); });
  require_error(Errc::peer_lost, {2}, [&] { context.allocate<int>(1); });
  survivors.barrier();
}

TEST(KilledRank, EndsWaitsOfOthersAndNotOfTeamsWithoutIt) {
  auto results = run_ranks(RankKind::processes, "killed_in_a_barrier", 4);
  EXPECT_EQ(results[2].signal, SIGKILL);
  // The survivors' waits ended by the news of the death: their timeout is a minute away.
  for (const int rank : {0, 1, 3})
    EXPECT_LT(results[static_cast<std::size_t>(rank)].ended - results[2].ended,
              std::chrono::seconds(10));
  results[2] = {};
  expect_all_ok(results);
}

IR_SCENARIO(dies_and_leaves_a_child) {
  Context context(job, {.timeout = short_timeout});
  context.barrier();
  if (job.rank == 1) {
    if (::fork() == 0) {
      // The test waits for the end of the ranks' standard error, not for this child.
      for (const int descriptor : {0, 1, 2}) ::close(descriptor);
      ::alarm(10);
      ::pause();
    }
    ::kill(::getpid(), SIGKILL);
  }
  require_error(Errc::peer_lost, {1}, [&] { context.barrier(); });
}

TEST(KilledRank, IsSeenToDieThoughAChildOfItLives) {
  auto results = run_ranks(RankKind::processes, "dies_and_leaves_a_child", 3);
  EXPECT_EQ(results[1].signal, SIGKILL);
  results[1] = {};
  expect_all_ok(results);
}

IR_SCENARIO(child_ends_its_copy) {
  auto context = std::make_unique<Context>(job, ContextOptions{.timeout = long_timeout});
  context->barrier();
  if (job.rank == 1) {
    const pid_t child = ::fork();
    if (child == 0) {
      context.reset();
      ::_exit(0);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    require(WIFEXITED(status) && WEXITSTATUS(status) == 0,
            "the child ended its copy of the context");
  }
  context->barrier();
}

TEST(ForkedChild, CannotLeaveInItsParentsName) {
  expect_all_ok(run_ranks(RankKind::processes, "child_ends_its_copy", 3));
}

class FaultTest : public ::testing::TestWithParam<RankKind> {};
INSTANTIATE_TEST_SUITE_P(Ranks, FaultTest,
                         ::testing::Values(RankKind::threads, RankKind::processes),
                         [](const auto& test) { return name(test.param); });

IR_SCENARIO(leaves_early) {
  std::optional<Context> context(std::in_place, job, ContextOptions{.timeout = long_timeout});
  Team others = context->make_team({0, 2});
  Team pair = context->make_team({0, 1});
  context->barrier();
  if (job.rank == 1) {
    context.reset();
    return;
  }
  const Error error = require_error(Errc::peer_left, {1}, [&] { context->barrier(); });
  require(std::string(error.what()).find("rank 1 destroyed the context") != std::string::npos,
          error.what());
  others.barrier();
  require(others.all_gather(job.rank) == std::vector<int>({0, 2}), "a team without it works on");
  if (job.rank == 0) require_error(Errc::peer_left, {1}, [&] { pair.barrier(); });
}

TEST_P(FaultTest, ARankThatLeavesEndsOnlyWaitsThatNeedIt) {
  expect_all_ok(run_ranks(GetParam(), "leaves_early", 3));
}

IR_SCENARIO(leaves_after_its_part) {
  Context context(job);
  // Rank 0 is slow: the others are gone when it looks for their parts, which they sent before they
  // went.
  if (job.rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  context.barrier();
}

TEST_P(FaultTest, APartSentBeforeLeavingCounts) {
  expect_all_ok(run_ranks(GetParam(), "leaves_after_its_part", 4));
}

IR_SCENARIO(stays_away) {
  Context context(job, {.timeout = short_timeout});
  Team team = context.make_team({0, 1, 2, 3}, {.name = "four"});
  Team pair = context.make_team({0, 1});
  Team meetings = context.make_team({0, 1, 2, 3});
  // Rank 2 comes when the others have waited in vain.
  if (job.rank == 2) meetings.all_gather(0, 10);
  const Error error = require_error(Errc::timeout, {2}, [&] { team.barrier(); });
  if (job.rank != 2) meetings.all_gather(0, 10);
  const std::string text = error.what();
  require(text.find("rank 2 did not arrive within 3 s at barrier (call 1 of team four)") !=
              std::string::npos,
          text);
  const Error again = require_error(Errc::timeout, {2}, [&] { team.all_gather(1); });
  require(std::string(again.what()).find("team four failed earlier") != std::string::npos,
          again.what());
  // Other teams, new ones among them, live on.
  if (pair.is_member()) pair.barrier();
  Team fresh = context.make_team({0, 1, 2, 3});
  fresh.barrier();
  context.barrier();
}

TEST_P(FaultTest, ARankThatStaysAwayIsNamedByAllAndTheTeamStaysFailed) {
  expect_all_ok(run_ranks(GetParam(), "stays_away", 4));
}

IR_SCENARIO(stays_away_from_allocation) {
  Context context(job, {.timeout = short_timeout});
  Team meetings = context.make_team({0, 1, 2});
  if (job.rank == 1) {
    // Comes when the others have waited in vain.
    meetings.all_gather(0, 10);
    require_error(Errc::timeout, {1}, [&] { context.allocate<int>(64); });
  } else {
    const Error error = require_error(Errc::timeout, {1}, [&] { context.allocate<int>(64); });
    require(
        std::string(error.what()).find("at allocate(256 bytes, alignment 4)") != std::string::npos,
        error.what());
    meetings.all_gather(0, 10);
  }
  require_error(Errc::timeout, {1}, [&] { context.make_team({0}); });
}

TEST_P(FaultTest, AnAllocationNobodyElseMakesEndsInTime) {
  expect_all_ok(run_ranks(GetParam(), "stays_away_from_allocation", 3));
}

}  // namespace
}  // namespace iridium::test
