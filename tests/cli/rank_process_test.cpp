#include "cli/rank_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace iridium::cli {
namespace {

TEST(ProcessEnd, HasTheStatusAShellReports) {
  EXPECT_EQ((ProcessEnd{.by_signal = false, .value = 3}.status()), 3);
  EXPECT_EQ((ProcessEnd{.by_signal = true, .value = 9}.status()), 137);
}

TEST(ProcessEnd, IsASuccessOnlyWithStatusZero) {
  EXPECT_TRUE((ProcessEnd{.by_signal = false, .value = 0}.is_success()));
  EXPECT_FALSE((ProcessEnd{.by_signal = false, .value = 1}.is_success()));
  EXPECT_FALSE((ProcessEnd{.by_signal = true, .value = 15}.is_success()));
}

TEST(ProcessEnd, DescribesItself) {
  EXPECT_EQ((ProcessEnd{.by_signal = false, .value = 3}.describe()), "exited with status 3");
  EXPECT_EQ((ProcessEnd{.by_signal = true, .value = SIGKILL}.describe()),
            "was killed by signal 9 (Killed)");
}

TEST(HasEnded, AnswersAgainUntilTheProcessIsReaped) {
  const pid_t process = ::fork();
  if (process == 0) ::_exit(5);
  siginfo_t info = {};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOWAIT), 0);
  for (int i = 0; i < 2; ++i) {
    ProcessEnd end;
    EXPECT_TRUE(has_ended(process, end));
    EXPECT_FALSE(end.by_signal);
    EXPECT_EQ(end.value, 5);
  }
  EXPECT_EQ(::waitpid(process, nullptr, 0), process);
}

TEST(HasEnded, IsFalseForARunningProcess) {
  const pid_t process = ::fork();
  if (process == 0) {
    ::pause();
    ::_exit(0);
  }
  ProcessEnd end;
  EXPECT_FALSE(has_ended(process, end));
  ::kill(process, SIGKILL);
  EXPECT_EQ(::waitpid(process, nullptr, 0), process);
}

}  // namespace
}  // namespace iridium::cli
