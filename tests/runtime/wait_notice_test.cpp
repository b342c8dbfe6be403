// What ranks say while they wait for others, and under which limit they wait.
#include <gtest/gtest.h>

#include <string>

#include "base/host_wait.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

constexpr std::chrono::milliseconds soon{1};

void expect_words(const RankResult& rank, const std::string& words) {
  EXPECT_NE(rank.error.find(words), std::string::npos) << rank.error << "\nlacks " << words;
}

IR_SCENARIO(waits_at_the_rendezvous) {
  const FirstNoticeOverride first(soon);
  const int missing = job.rank == 3 ? 0 : 2;
  require_error(Errc::timeout, {missing},
                [&] { Context context(job, {.construction_timeout = short_timeout}); });
}

TEST(WaitNotices, OfARendezvousNameTheMissing) {
  auto jobs = make_local_jobs(3);
  jobs.pop_back();
  const auto results = run_ranks(RankKind::processes, "waits_at_the_rendezvous", jobs);
  expect_all_ok(results);
  expect_words(results[0], "iridium[0] warn: has waited ");
  expect_words(results[1], "iridium[1] warn: has waited ");
  for (const RankResult& rank : results) {
    expect_words(rank, " for rank 2 at step rendezvous, and gives up in ");
    expect_words(rank, "(ContextOptions::construction_timeout, IRIDIUM_CONSTRUCTION_TIMEOUT)");
  }
}

TEST(WaitNotices, OfARendezvousNameTheLeaderWhereNobodyLeads) {
  const auto jobs = make_local_jobs(4);
  const auto results = run_ranks(RankKind::processes, "waits_at_the_rendezvous", {jobs[3]});
  expect_all_ok(results);
  expect_words(results[0], " for rank 0 at step rendezvous, and gives up in ");
}

IR_SCENARIO(waits_in_calls) {
  Context context(job, {.timeout = std::chrono::seconds(1), .construction_timeout = short_timeout});
  Team pair = context.make_team({0, 1}, {.name = "pair"});
  Team meetings = context.make_team({0, 1});
  if (job.rank == 0) {
    const FirstNoticeOverride first(soon);
    const std::string barrier = require_error(Errc::timeout, {1}, [&] { pair.barrier(); }).what();
    require(barrier.find("within 1 s") != std::string::npos &&
                barrier.ends_with("; ContextOptions::timeout or IRIDIUM_TIMEOUT changes the limit"),
            barrier);
    const std::string team =
        require_error(Errc::timeout, {1}, [&] { context.make_team({0, 1}); }).what();
    require(team.find("within 3 s") != std::string::npos &&
                team.ends_with("; ContextOptions::construction_timeout or "
                               "IRIDIUM_CONSTRUCTION_TIMEOUT changes the limit"),
            team);
  }
  // Where rank 1 has waited all the time.
  meetings.all_gather(0, 10);
}

TEST(WaitNotices, OfCallsNameTheMissingAndTheCall) {
  const auto results = run_ranks(RankKind::processes, "waits_in_calls", 2);
  expect_all_ok(results);
  expect_words(results[0], " for rank 1 at barrier (call 1 of team pair), and gives up in ");
  expect_words(results[0], " for rank 1 at make_team(0, 1) (call ");
}

}  // namespace
}  // namespace iridium::test
