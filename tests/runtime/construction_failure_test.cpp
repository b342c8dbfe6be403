// A rank killed with SIGKILL in every phase of its construction.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/rendezvous.h"
#include "runtime/socket.h"
#include "support/ranks.h"
#include "support/resources.h"
#include "support/sanitizers.h"

namespace iridium::test {
namespace {

constexpr const char* step_variable = "IRIDIUM_TEST_STEP";
constexpr const char* victim_variable = "IRIDIUM_TEST_VICTIM";

int victim() {
  return std::atoi(std::getenv(victim_variable));
}

/// What the survivors must see: a rank that dies before it said hello was never there.
IR_SCENARIO(killed_at_step) {
  const std::string fatal_step = std::getenv(step_variable);
  ContextOptions options = {.construction_timeout = short_timeout};
  if (job.rank == victim())
    options.on_step = [&](std::string_view step) {
      if (step == fatal_step) ::kill(::getpid(), SIGKILL);
    };
  const Errc expected = fatal_step == "rendezvous" ? Errc::timeout : Errc::peer_lost;
  require_error(expected, {victim()}, [&] {
    Context context(job, options);
    context.barrier();
  });
}

class KilledAtStep : public ::testing::TestWithParam<std::tuple<const char*, int>> {};
INSTANTIATE_TEST_SUITE_P(Steps, KilledAtStep,
                         ::testing::Combine(::testing::Values("rendezvous", "links", "segments",
                                                              "window", "world"),
                                            ::testing::Values(0, 2)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) + "_rank_" +
                                  std::to_string(std::get<1>(test.param));
                         });

TEST_P(KilledAtStep, SurvivorsNameTheDead) {
  const ScopedRuntimeDirectory directory;
  const auto [step, rank] = GetParam();
  ::setenv(step_variable, step, 1);
  ::setenv(victim_variable, std::to_string(rank).c_str(), 1);
  auto results = run_ranks(RankKind::processes, "killed_at_step", 4);
  auto& dead = results[static_cast<std::size_t>(rank)];
  EXPECT_EQ(dead.signal, SIGKILL) << dead.error;
  dead = {};
  expect_all_ok(results);
  // Only a leader that died at its post leaves its socket behind; the next leader of the same name
  // removes it.
  const bool may_leave_files = rank == 0 && std::string(step) == "rendezvous";
  EXPECT_TRUE(may_leave_files || files_in(directory.path()).empty());
}

IR_SCENARIO(killed_while_waiting) {
  // Rank 3 comes when rank 2 is dead and the others know.
  ContextOptions options = {.construction_timeout = 2 * short_timeout};
  if (job.rank == 2)
    options.on_step = [](std::string_view) {
      std::thread([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1000));
        ::kill(::getpid(), SIGKILL);
      }).detach();
    };
  if (job.rank == 3) std::this_thread::sleep_for(short_timeout);
  const Errc expected = job.rank == 3 ? Errc::timeout : Errc::peer_lost;
  require_error(expected, {job.rank == 3 ? 0 : 2}, [&] { Context context(job, options); });
}

TEST(KilledWhileWaiting, OthersAreToldAtOnce) {
  auto results = run_ranks(RankKind::processes, "killed_while_waiting", 4);
  EXPECT_EQ(results[2].signal, SIGKILL);
  results[2] = {};
  expect_all_ok(results);
}

IR_SCENARIO(leads_and_dies) {
  ::alarm(1);  // ends the process like a kill: nothing is cleaned up
  Context context(job, {.construction_timeout = std::chrono::seconds(60)});
}

IR_SCENARIO(leads_after_the_dead) {
  Context context(job);
  context.barrier();
}

TEST(KilledLeader, ItsSocketDoesNotDisturbTheNext) {
  const ScopedRuntimeDirectory directory;
  const auto jobs = make_local_jobs(2);
  EXPECT_EQ(run_ranks(RankKind::processes, "leads_and_dies", {jobs[0]})[0].signal, SIGALRM);
  EXPECT_FALSE(files_in(directory.path()).empty());
  expect_all_ok(run_ranks(RankKind::processes, "leads_after_the_dead", jobs));
  EXPECT_TRUE(files_in(directory.path()).empty());
}

TEST(KilledLeader, ItsFilesGoWhenAnyOtherJobMeets) {
  const ScopedRuntimeDirectory directory;
  EXPECT_EQ(run_ranks(RankKind::processes, "leads_and_dies", {make_local_jobs(2)[0]})[0].signal,
            SIGALRM);
  EXPECT_FALSE(files_in(directory.path()).empty());
  expect_all_ok(run_ranks(RankKind::processes, "leads_after_the_dead", 2));
  EXPECT_TRUE(files_in(directory.path()).empty());
}

IR_SCENARIO(rank_1_lacks_descriptors) {
  std::optional<DescriptorLimit> limit;
  ContextOptions options = {.construction_timeout = std::chrono::minutes(1)};
  if (job.rank == 1)
    options.on_step = [&](std::string_view step) {
      // Enough for its own segment, and not for those of the others.
      if (step == "segments") limit.emplace(1);
    };
  const Error error = require_error(Errc::system, {1}, [&] { Context context(job, options); });
  // CUDA says less of it.
  const std::string text = error.what();
  require(text.find("ulimit -n raises that") != std::string::npos ||
              text.find("as a descriptor") != std::string::npos,
          text);
}

TEST(LackOfDescriptors, IsBlamedOnTheRankThatHasIt) {
  if (under_address_sanitizer) GTEST_SKIP() << ubsan_needs_descriptors;
  for (int i = 0; i < 5; ++i)
    expect_all_ok(run_ranks(RankKind::processes, "rank_1_lacks_descriptors", 4));
}

IR_SCENARIO(strangers_take_the_leaders_descriptors) {
  std::vector<FileDescriptor> strangers;
  ContextOptions options = {.construction_timeout = std::chrono::minutes(1)};
  std::optional<DescriptorLimit> limit;
  options.on_step = [&](std::string_view step) {
    if (job.rank == 0 && step == "rendezvous") limit.emplace(10);
    if (job.rank == 0 && step == "links") limit.reset();
    if (job.rank == 1 && step == "rendezvous")
      while (strangers.size() < 20) {
        if (auto stranger = connect_to(rendezvous_path(job, "default")))
          strangers.push_back(std::move(*stranger));
        else
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
  };
  Context context(job, options);
  context.barrier();
}

TEST(LackOfDescriptors, DoesNotEndARendezvousForWhichStrangersCame) {
  expect_all_ok(run_ranks(RankKind::processes, "strangers_take_the_leaders_descriptors", 2));
}

/// Leaves `job`'s rank so many descriptors for its rendezvous, and all of them half a second later.
void lack_descriptors_for_a_while(const Job& job, int at_first) {
  std::optional<DescriptorLimit> limit;
  std::jthread others;
  ContextOptions options = {.construction_timeout = std::chrono::minutes(1)};
  options.on_step = [&](std::string_view step) {
    if (step != "rendezvous") return;
    limit.emplace(at_first);
    others = std::jthread([&limit] {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      limit.reset();
    });
  };
  Context context(job, options);
  others.join();
  context.barrier();
}

IR_SCENARIO(leader_cannot_open_its_lock) {
  if (job.rank == 0) return lack_descriptors_for_a_while(job, 0);
  Context(job).barrier();
}
IR_SCENARIO(leader_cannot_accept) {
  // Enough for the lock and the socket that listens.
  if (job.rank == 0) return lack_descriptors_for_a_while(job, 2);
  Context(job).barrier();
}
IR_SCENARIO(follower_cannot_connect) {
  if (job.rank == 1) return lack_descriptors_for_a_while(job, 0);
  Context(job).barrier();
}

TEST(LackOfDescriptors, ForAMomentDoesNotEndARendezvous) {
  if (under_address_sanitizer) GTEST_SKIP() << ubsan_needs_descriptors;
  for (const char* scenario :
       {"leader_cannot_open_its_lock", "leader_cannot_accept", "follower_cannot_connect"}) {
    SCOPED_TRACE(scenario);
    expect_all_ok(run_ranks(RankKind::processes, scenario, 3));
  }
}

IR_SCENARIO(lacks_descriptors_for_good) {
  const Error error = require_error(Errc::system, {}, [&] {
    std::optional<DescriptorLimit> limit;
    Context context(job, {.construction_timeout = std::chrono::milliseconds(300),
                          .on_step = [&](std::string_view) { limit.emplace(0); }});
  });
  require(std::string(error.what()).find("Too many open files (this process may have ") !=
              std::string::npos,
          error.what());
}

TEST(LackOfDescriptors, ForGoodSaysHowToRaiseTheLimit) {
  if (under_address_sanitizer) GTEST_SKIP() << ubsan_needs_descriptors;
  const auto jobs = make_local_jobs(2);
  for (const Job& job : jobs)
    expect_all_ok(run_ranks(RankKind::processes, "lacks_descriptors_for_good", {job}));
}

}  // namespace
}  // namespace iridium::test
