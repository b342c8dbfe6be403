// Construction when the ranks or their environment are wrong: everyone gets the reason.
#include <gtest/gtest.h>

#include <thread>

#include "support/ranks.h"

namespace iridium::test {
namespace {

const ContextOptions impatient = {.construction_timeout = short_timeout};

class ConstructionTest : public ::testing::TestWithParam<RankKind> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ConstructionTest,
                         ::testing::Values(RankKind::threads, RankKind::processes),
                         [](const auto& test) { return name(test.param); });

IR_SCENARIO(rank_2_never_comes) {
  const Error error = require_error(Errc::timeout, {2}, [&] { Context context(job, impatient); });
  const std::string text = error.what();
  require(text.find("rank 2 did not come within 3 s at step rendezvous") != std::string::npos &&
              text.find("; ContextOptions::construction_timeout or IRIDIUM_CONSTRUCTION_TIMEOUT "
                        "changes the limit") != std::string::npos,
          text);
}

TEST_P(ConstructionTest, ARankThatNeverComesIsNamedByAll) {
  auto jobs = make_local_jobs(3);
  jobs.pop_back();
  expect_all_ok(run_ranks(GetParam(), "rank_2_never_comes", jobs));
}

IR_SCENARIO(leader_never_comes) {
  const Error error = require_error(Errc::timeout, {0}, [&] { Context context(job, impatient); });
  const std::string text = error.what();
  require(text.find("rank 0 did not come within 3 s") != std::string::npos &&
              text.find("ContextOptions::construction_timeout or IRIDIUM_CONSTRUCTION_TIMEOUT") !=
                  std::string::npos,
          text);
}

TEST_P(ConstructionTest, ALeaderThatNeverComesIsNamedByAll) {
  auto jobs = make_local_jobs(3);
  jobs.erase(jobs.begin());
  expect_all_ok(run_ranks(GetParam(), "leader_never_comes", jobs));
}

IR_SCENARIO(rank_1_comes_late) {
  if (job.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  Context context(job);
  context.barrier();
}

TEST_P(ConstructionTest, ARankMayComeLate) {
  expect_all_ok(run_ranks(GetParam(), "rank_1_comes_late", 3));
}

IR_SCENARIO(leader_comes_late) {
  if (job.rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  Context context(job);
  context.barrier();
}

TEST_P(ConstructionTest, TheLeaderMayComeLate) {
  expect_all_ok(run_ranks(GetParam(), "leader_comes_late", 3));
}

IR_SCENARIO(two_ranks_one_id) {
  // A rank that comes after the rendezvous has failed finds nobody.
  try {
    Context context(job, impatient);
  } catch (const Error& error) {
    const bool named =
        error.code() == Errc::invalid_argument &&
        std::string(error.what()).find("two ranks have the id 1") != std::string::npos;
    const bool too_late =
        job.rank != 0 && error.code() == Errc::timeout && error.ranks() == std::vector{0};
    require(named || too_late, error.what());
    return;
  }
  require(false, "a context was made");
}

TEST_P(ConstructionTest, TwoRanksWithOneIdAreRefused) {
  auto jobs = make_local_jobs(3);
  jobs[2].rank = 1;
  expect_all_ok(run_ranks(GetParam(), "two_ranks_one_id", jobs));
}

IR_SCENARIO(first_of_two_leaders) {
  require_error(Errc::timeout, {1}, [&] { Context context(job, impatient); });
}

TEST_P(ConstructionTest, TwoLeadersAreRefused) {
  const auto jobs = make_local_jobs(2);
  std::vector<RankResult> first;
  std::thread waiting([&] { first = run_ranks(GetParam(), "first_of_two_leaders", {jobs[0]}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  const Error error =
      expect_error(Errc::invalid_argument, [&] { Context context(jobs[0], impatient); });
  EXPECT_NE(std::string(error.what()).find("two ranks have the id 0"), std::string::npos)
      << error.what();
  waiting.join();
  expect_all_ok(first);
}

IR_SCENARIO(another_size) {
  try {
    Context context(job, impatient);
  } catch (const Error& error) {
    const bool named =
        error.code() == Errc::mismatch && std::string(error.what())
                                                  .find(
                                                      "rank 1 says the job has 4 "
                                                      "ranks, rank 0 says 3") != std::string::npos;
    const bool too_late =
        job.rank == 2 && error.code() == Errc::timeout && error.ranks() == std::vector{0};
    require(named || too_late, error.what());
    return;
  }
  require(false, "a context was made");
}

TEST_P(ConstructionTest, RanksThatCountDifferentlyAreRefused) {
  auto jobs = make_local_jobs(3);
  jobs[1].size = 4;
  expect_all_ok(run_ranks(GetParam(), "another_size", jobs));
}

IR_SCENARIO(wrong_token) {
  if (job.rank == 1) {
    const Error error =
        require_error(Errc::permission, {}, [&] { Context context(job, impatient); });
    require(std::string(error.what()).find("wrong token") != std::string::npos, error.what());
  } else {
    require_error(Errc::timeout, {1}, [&] { Context context(job, impatient); });
  }
}

TEST_P(ConstructionTest, AWrongTokenIsTurnedAwayAndTheOthersKeepWaiting) {
  auto jobs = make_local_jobs(3);
  jobs[1].token = "guess";
  expect_all_ok(run_ranks(GetParam(), "wrong_token", jobs));
}

void expect_mismatch(const Job& job, const ContextOptions& mine, const std::string& text) {
  const Error error = require_error(Errc::mismatch, {0, 1}, [&] { Context context(job, mine); });
  require(std::string(error.what()).find(text) != std::string::npos, error.what());
}

IR_SCENARIO(another_heap_size) {
  expect_mismatch(job, {.heap_bytes = std::size_t{job.rank == 1 ? 64u : 32u} << 20},
                  "the heap size (bytes) differs: rank 0 has 33554432, rank 1 has 67108864");
}
IR_SCENARIO(another_timeout) {
  expect_mismatch(job, {.timeout = std::chrono::seconds(job.rank == 1 ? 20 : 10)},
                  "the timeout (milliseconds) differs: rank 0 has 10000, rank 1 has 20000");
}
IR_SCENARIO(another_mode) {
  expect_mismatch(job, {.checked = job.rank == 1},
                  "checked mode differs: rank 0 has false, rank 1 has true");
}
IR_SCENARIO(other_lanes_at_once) {
  expect_mismatch(job, {.lanes_at_once = job.rank == 1 ? 3 : 2},
                  "the number of lanes at once differs: rank 0 has 2, rank 1 has 3");
}

TEST_P(ConstructionTest, RanksWithOtherOptionsAreNamed) {
  for (const char* scenario :
       {"another_heap_size", "another_timeout", "another_mode", "other_lanes_at_once"})
    expect_all_ok(run_ranks(GetParam(), scenario, 3));
}

/// `culprit` fails when `step` begins; all get its reason.
void fail_at_step(const Job& job, int culprit, std::string_view fatal_step) {
  ContextOptions options = {.construction_timeout = short_timeout};
  if (job.rank == culprit)
    options.on_step = [&](std::string_view step) {
      if (step == fatal_step) throw Error(Errc::out_of_memory, "no room for a window");
    };
  const Error error =
      require_error(Errc::out_of_memory, {}, [&] { Context context(job, options); });
  const std::string prefix =
      job.rank == culprit ? "" : "rank " + std::to_string(culprit) + " failed: ";
  require(std::string(error.what()).find(prefix + "no room for a window") != std::string::npos,
          error.what());
}

IR_SCENARIO(leader_fails_at_links) {
  fail_at_step(job, 0, "links");
}
IR_SCENARIO(rank_1_fails_at_segments) {
  fail_at_step(job, 1, "segments");
}
IR_SCENARIO(rank_1_fails_at_window) {
  fail_at_step(job, 1, "window");
}
IR_SCENARIO(rank_2_fails_at_world) {
  fail_at_step(job, 2, "world");
}

TEST_P(ConstructionTest, WhatOneRankFailsWithIsWhatAllGet) {
  for (const char* scenario : {"leader_fails_at_links", "rank_1_fails_at_segments",
                               "rank_1_fails_at_window", "rank_2_fails_at_world"})
    expect_all_ok(run_ranks(GetParam(), scenario, 4));
}

/// `culprit` cannot even make its backend, and all get its reason; then all can.
void cannot_set_up(const Job& job, int culprit) {
  ContextOptions options = {.construction_timeout = std::chrono::minutes(1)};
  if (job.rank == culprit) options.heap_bytes = std::size_t{1} << 50;
  const Error error =
      require_error(Errc::out_of_memory, {culprit}, [&] { Context context(job, options); });
  const std::string reason = "rank " + std::to_string(culprit) + " failed: a heap of ";
  require(std::string(error.what()).find(reason) != std::string::npos, error.what());
  Context context(job);
  context.barrier();
}

IR_SCENARIO(leader_cannot_set_up) {
  cannot_set_up(job, 0);
}
IR_SCENARIO(rank_2_cannot_set_up) {
  cannot_set_up(job, 2);
}

TEST_P(ConstructionTest, ARankThatCannotSetItselfUpTellsTheOthersAtOnce) {
  const auto started = std::chrono::steady_clock::now();
  for (const char* scenario : {"leader_cannot_set_up", "rank_2_cannot_set_up"})
    expect_all_ok(run_ranks(GetParam(), scenario, 4));
  // Nobody waited out the timeout of a minute.
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(50));
}

IR_SCENARIO(again_after_failure) {
  // Rank 1 stays away the first time; the second time all come, right away, under the same name.
  if (job.rank != 1) require_error(Errc::timeout, {1}, [&] { Context context(job, impatient); });
  if (job.rank == 1) std::this_thread::sleep_for(short_timeout + std::chrono::milliseconds(500));
  Context context(job);
  require(context.world().all_gather(job.rank)[1] == 1, "all are here");
}

TEST_P(ConstructionTest, AContextCanBeMadeAfterAFailedOne) {
  expect_all_ok(run_ranks(GetParam(), "again_after_failure", 3));
}

IR_SCENARIO(fails_in_the_last_step_then_again) {
  // A lane that does not fit the heap fails after everything is connected and mapped.
  const ContextOptions too_small = {.heap_bytes = std::size_t{1} << 20};
  for (int i = 0; i < 10; ++i)
    require_error(Errc::out_of_memory, {}, [&] { Context context(job, too_small); });
  Context context(job);
  context.barrier();
}

TEST_P(ConstructionTest, FailedOnesInARowDoNotMeetEachOther) {
  expect_all_ok(run_ranks(GetParam(), "fails_in_the_last_step_then_again", 4));
}

}  // namespace
}  // namespace iridium::test
