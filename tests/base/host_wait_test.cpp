#include "base/host_wait.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace iridium {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = Deadline::Clock;

TEST(WaitLimits, NameTheSettingThatChangesThem) {
  EXPECT_EQ(advice(call_limit(seconds(1))),
            "; ContextOptions::timeout or IRIDIUM_TIMEOUT changes the limit");
  EXPECT_EQ(advice(construction_limit(seconds(1))),
            "; ContextOptions::construction_timeout or IRIDIUM_CONSTRUCTION_TIMEOUT changes the "
            "limit");
  EXPECT_EQ(call_limit(seconds(7)).timeout, seconds(7));
  EXPECT_EQ(construction_limit(seconds(8)).timeout, seconds(8));
}

TEST(HostWait, LooksUpForItsFirstNoticeAfterTenSeconds) {
  const auto before = Clock::now();
  const HostWait wait(0, call_limit(std::chrono::hours(1)));
  EXPECT_GE(wait.next_look(), before + seconds(10));
  EXPECT_LE(wait.next_look(), Clock::now() + seconds(10));
  EXPECT_LE(wait.next_look_ms(), 10'000);
  EXPECT_FALSE(wait.notice_is_due());
}

TEST(HostWait, LooksUpAtItsDeadlineWhereThatIsFirst) {
  const HostWait wait(0, call_limit(seconds(5)));
  EXPECT_EQ(wait.next_look(), wait.deadline().at());
  EXPECT_LE(wait.next_look_ms(), 5'000);
  EXPECT_EQ(wait.deadline().timeout(), seconds(5));
}

TEST(HostWait, ADueNoticeIsLookedAtWithoutWaiting) {
  const FirstNoticeOverride first(milliseconds(1));
  const HostWait wait(0, call_limit(std::chrono::hours(1)));
  while (!wait.notice_is_due()) std::this_thread::yield();
  EXPECT_EQ(wait.next_look_ms(), 0);
  EXPECT_LE(wait.next_look(), Clock::now());
}

TEST(HostWait, TellsForWhomAndHowLongAndWhatChangesIt) {
  HostWait wait(3, call_limit(std::chrono::hours(1)));
  testing::internal::CaptureStderr();
  wait.tell("rank 2 at barrier");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(text.starts_with("iridium[3] warn: has waited ")) << text;
  EXPECT_NE(text.find(" for rank 2 at barrier, and gives up in 3"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with(" (ContextOptions::timeout, IRIDIUM_TIMEOUT)\n")) << text;
}

TEST(HostWait, TellsAtIntervalsThatDouble) {
  const FirstNoticeOverride first(milliseconds(1));
  HostWait wait(0, call_limit(std::chrono::hours(1)));
  const auto start = Clock::now();
  testing::internal::CaptureStderr();
  int notices = 0;
  while (Clock::now() - start < milliseconds(300)) {
    if (!wait.notice_is_due()) continue;
    wait.tell("rank 1");
    ++notices;
  }
  testing::internal::GetCapturedStderr();
  // Due after 1, 3, 7, … 255 ms; a slow machine leaves some out.
  EXPECT_GE(notices, 1);
  EXPECT_LE(notices, 9);
}

TEST(FirstNotices, AreAsUsualWhenTheOverrideHasGone) {
  {
    const FirstNoticeOverride first(milliseconds(1));
  }
  const auto before = Clock::now();
  EXPECT_GE(HostWait(0, call_limit(std::chrono::hours(1))).next_look(), before + seconds(10));
}

}  // namespace
}  // namespace iridium
