// Faults of host waits: who died, who left, who did not come.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <thread>

#include "support/memory.h"
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

/// Forks while a thread of rank 1 is in `call`; the child ends its copies.
void fork_during(std::unique_ptr<Context>& context, std::unique_ptr<Team>& team,
                 const std::function<void()>& call, const std::function<void()>& end_call) {
  std::jthread thread(call);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    team.reset();
    context.reset();
    ::_exit(0);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  end_call();
  require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended its copies");
}

IR_SCENARIO(forks_while_a_thread_waits) {
  auto context = std::make_unique<Context>(job, ContextOptions{.timeout = long_timeout});
  auto team = std::make_unique<Team>(context->make_team({0, 1}));
  const auto call = [&] { team->barrier(); };
  if (job.rank == 1) return fork_during(context, team, call, [&] { context->barrier(); });
  context->barrier();
  call();
}

IR_SCENARIO(forks_while_a_thread_sends) {
  auto context = std::make_unique<Context>(job, ContextOptions{.timeout = long_timeout});
  auto team = std::make_unique<Team>(context->make_team({0, 1}));
  const pid_t first = team->all_gather(::getpid())[0];
  // More than the link to a rank that does not read takes.
  std::vector<std::byte> bytes(Team::max_host_bytes);
  const auto call = [&] { team->broadcast_bytes(bytes, 1); };
  if (job.rank == 0) return call();
  ::kill(first, SIGSTOP);
  fork_during(context, team, call, [&] { ::kill(first, SIGCONT); });
}

TEST(ForkedChild, EndsItsCopiesThoughAThreadOfTheParentIsInACall) {
  expect_all_ok(run_ranks(RankKind::processes, "forks_while_a_thread_waits", 2));
  expect_all_ok(run_ranks(RankKind::processes, "forks_while_a_thread_sends", 2));
}

struct DoNothing {
  IR_DEVICE void operator()(Block) const {}
};

/// How many of a context's calls a forked child is not refused, or 100 when there is another error.
int count_calls_allowed(Context& context, Team& team, Stream& stream, StreamRef& borrowed,
                        const Graph& graph, SymmetricArray<int>& array) {
  Context childs_context(make_local_jobs(1)[0], {.backend = BackendKind::host});
  Stream childs_stream = childs_context.make_stream();
  // The process is looked at before the arguments: what looks at those may wait for the parent.
  std::uint32_t not_symmetric = 0;
  const std::vector<std::function<void()>> calls = {
      [&] { put(stream, team, &not_symmetric, &not_symmetric, 4, 0); },
      [&] { get(childs_stream, team, &not_symmetric, array.data(), 4, 0); },
      [&] { signal(stream, team, &not_symmetric, 0, 1); },
      [&] { put_signal(stream, team, array.data(), array.data(), 4, 0, &not_symmetric, 1); },
      [&] { all_reduce(childs_stream, team, array.data(), array.data(), 100, {}); },
      [&] { all_reduce(stream, team, array, array, 0, {}); },
      [&] { broadcast(stream, team, &not_symmetric, &not_symmetric, 0, 0, {}); },
      [&] { context.launch(childs_stream, 1, DoNothing{}); },
      [&] { context.prepare<DoNothing>(); },
      [&] { childs_stream.launch(graph); },
      [&] { static_cast<void>(graph.node_count()); },
      [&] { context.allocate<int>(1); },
      [&] { static_cast<void>(context.is_symmetric(array.data(), 4)); },
      [&] { static_cast<void>(context.at(array.data(), 0)); },
      [&] { context.make_team({0, 1}); },
      [&] { context.barrier(); },
      [&] { context.make_stream(); },
      [&] { context.borrow_stream(nullptr); },
      [&] { team.barrier(); },
      [&] { team.all_gather(1); },
      [&] { team.check(); },
      [&] { static_cast<void>(team.lane("test")); },
      [&] { team.retain_on(stream); },
      [&] { array.retain_on(stream); },
      [&] { all_reduce(stream, team, array.data(), array.data(), 100, {}); },
      [&] { device_barrier(stream, team); },
      [&] { stream.copy(array.data(), array.data() + 1, 4); },
      [&] { stream.fill(array.data(), 1, 4); },
      [&] { stream.call([] {}); },
      [&] { stream.synchronize(); },
      [&] { static_cast<void>(stream.idle()); },
      [&] { stream.begin_capture(); },
      [&] { stream.end_capture(); },
      [&] { static_cast<void>(stream.capture_status()); },
      [&] { stream.launch(graph); },
      [&] { borrowed.fill(array.data(), 1, 4); },
  };
  int allowed = 0;
  for (const auto& call : calls) {
    try {
      call();
      ++allowed;
    } catch (const Error& error) {
      const bool refused = error.code() == Errc::unsupported &&
                           std::string(error.what()).find("forked") != std::string::npos;
      if (!refused) return 100;
    }
  }
  return allowed;
}

IR_SCENARIO(child_calls) {
  auto context = std::make_unique<Context>(job, ContextOptions{.timeout = long_timeout});
  auto team = std::make_unique<Team>(context->make_team({1, 0}));
  auto stream = std::make_unique<Stream>(context->make_stream());
  StreamRef borrowed = context->borrow_stream(stream->native_handle());
  auto array = std::make_unique<SymmetricArray<int>>(context->allocate<int>(100));
  stream->begin_capture();
  all_reduce(*stream, *team, array->data(), array->data(), 100, {});
  auto graph = std::make_unique<Graph>(stream->end_capture());
  stream->fill(array->data(), 0, 400);
  stream->launch(*graph);
  if (job.rank == 1) {
    // The stream's thread holds the stream's lock again and again while the child is made.
    for (int i = 0; i < 20; ++i) stream->call([] {});
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(10);
      const int allowed = count_calls_allowed(*context, *team, *stream, borrowed, *graph, *array);
      graph.reset();
      array.reset();
      stream.reset();
      team.reset();
      context.reset();
      ::_exit(allowed);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    require(WIFEXITED(status), "the child ended by itself");
    require(WEXITSTATUS(status) == 0,
            "calls allowed in the child: " + std::to_string(WEXITSTATUS(status)));
  }
  stream->fill(array->data(), 1, 400);
  stream->launch(*graph);
  stream->synchronize();
  require(Memory(*context).read(array->data() + 99) == 0x02020202,
          "the parent's collective is right");
  context->barrier();
}

TEST(ForkedChild, IsRefusedByEveryCallAndEndsInPeace) {
  expect_all_ok(run_ranks(RankKind::processes, "child_calls", 2));
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
