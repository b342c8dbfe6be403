#include "base/deadline.h"

#include <gtest/gtest.h>

namespace iridium {
namespace {

using std::chrono::milliseconds;

TEST(Deadlines, InTheFutureAreNotExpired) {
  const Deadline deadline(std::chrono::hours(1));
  EXPECT_FALSE(deadline.expired());
  EXPECT_GT(deadline.left_ms(), 0);
  EXPECT_LE(deadline.left_ms(), 3'600'000);
  EXPECT_EQ(deadline.timeout(), std::chrono::hours(1));
}

TEST(Deadlines, OfNoTimeAreExpiredAtOnce) {
  const Deadline deadline(milliseconds(0));
  EXPECT_TRUE(deadline.expired());
  EXPECT_EQ(deadline.left_ms(), 0);
}

TEST(Deadlines, InThePastHaveNothingLeft) {
  const Deadline deadline(milliseconds(-5000));
  EXPECT_TRUE(deadline.expired());
  EXPECT_EQ(deadline.left_ms(), 0);
}

TEST(Deadlines, LieTheTimeoutAfterTheirConstruction) {
  const auto before = Deadline::Clock::now();
  const Deadline deadline(milliseconds(250));
  const auto after = Deadline::Clock::now();
  EXPECT_GE(deadline.at(), before + milliseconds(250));
  EXPECT_LE(deadline.at(), after + milliseconds(250));
}

TEST(Deadlines, FarAwayFitWhatPollTakes) {
  EXPECT_EQ(Deadline(std::chrono::hours(24 * 366)).left_ms(), 1'000'000'000);
}

}  // namespace
}  // namespace iridium
