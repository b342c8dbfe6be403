#include "cli/rank_environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace iridium::cli {
namespace {

using Entries = std::vector<std::string>;

Entries sorted(Entries entries) {
  std::ranges::sort(entries);
  return entries;
}

TEST(RankEnvironment, AddsTheJobToWhatIsInherited) {
  const Entries entries = rank_environment({"HOME=/home", "EMPTY="}, {.ranks = 4},
                                           {.job = "name", .token = "secret"}, 3);
  EXPECT_EQ(sorted(entries),
            (Entries{"EMPTY=", "HOME=/home", "IRIDIUM_JOB=name", "IRIDIUM_LOCAL_RANK=3",
                     "IRIDIUM_RANK=3", "IRIDIUM_SIZE=4", "IRIDIUM_TOKEN=secret"}));
}

TEST(RankEnvironment, ReplacesTheVariablesOfAnOuterJob) {
  const Entries outer = {"IRIDIUM_RANK=7",      "IRIDIUM_SIZE=8",       "IRIDIUM_JOB=outer",
                         "IRIDIUM_TOKEN=outer", "IRIDIUM_RANKING=kept", "IRIDIUM_LOCAL_RANK=7"};
  const Entries entries =
      rank_environment(outer, {.ranks = 1}, {.job = "inner", .token = "inner"}, 0);
  EXPECT_EQ(sorted(entries),
            (Entries{"IRIDIUM_JOB=inner", "IRIDIUM_LOCAL_RANK=0", "IRIDIUM_RANK=0",
                     "IRIDIUM_RANKING=kept", "IRIDIUM_SIZE=1", "IRIDIUM_TOKEN=inner"}));
}

TEST(RankEnvironment, SetsBackendAndTimeoutOnlyWhenGiven) {
  const Entries outer = {"IRIDIUM_BACKEND=cuda", "IRIDIUM_TIMEOUT=7"};
  const auto contains = [](const Entries& entries, const std::string& entry) {
    return std::ranges::count(entries, entry) == 1;
  };
  const Entries inherited = rank_environment(outer, {.ranks = 1}, {}, 0);
  EXPECT_TRUE(contains(inherited, "IRIDIUM_BACKEND=cuda"));
  EXPECT_TRUE(contains(inherited, "IRIDIUM_TIMEOUT=7"));

  const Entries given =
      rank_environment(outer, {.ranks = 1, .backend = "host", .timeout = 2.5}, {}, 0);
  EXPECT_TRUE(contains(given, "IRIDIUM_BACKEND=host"));
  EXPECT_TRUE(contains(given, "IRIDIUM_TIMEOUT=2.5"));
  EXPECT_EQ(given.size(), inherited.size());
}

TEST(RankEnvironment, UnsetsTheBackendForAuto) {
  const Entries entries =
      rank_environment({"IRIDIUM_BACKEND=cuda"}, {.ranks = 1, .backend = "auto"}, {}, 0);
  for (const std::string& entry : entries) EXPECT_FALSE(entry.starts_with("IRIDIUM_BACKEND"));
}

TEST(RankEnvironment, WritesTimeoutsWithoutExponent) {
  for (const auto& [seconds, text] :
       {std::pair(0.001, "0.001"), std::pair(30.0, "30"), std::pair(1e6, "1000000")}) {
    const Entries entries = rank_environment({}, {.ranks = 1, .timeout = seconds}, {}, 0);
    EXPECT_EQ(std::ranges::count(entries, std::string("IRIDIUM_TIMEOUT=") + text), 1) << text;
  }
}

TEST(ChangedEnvironment, ReplacesAddsAndTakesOut) {
  const Entries entries = changed_environment(
      {"A=1", "B=2", "AB=3"}, {{"A", "4"}, {"B", std::nullopt}, {"C", "5"}, {"D", std::nullopt}});
  EXPECT_EQ(sorted(entries), (Entries{"A=4", "AB=3", "C=5"}));
}

TEST(JobIdentity, IsRandomHexadecimal) {
  const JobIdentity one = make_job_identity();
  const JobIdentity other = make_job_identity();
  for (const std::string& text : {one.job, one.token, other.job, other.token}) {
    EXPECT_EQ(text.size(), 32u);
    EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos) << text;
  }
  EXPECT_NE(one.job, one.token);
  EXPECT_NE(one.job, other.job);
  EXPECT_NE(one.token, other.token);
}

}  // namespace
}  // namespace iridium::cli
