#include "cli/signal_source.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace iridium::cli {
namespace {

/// Runs `check` in a process of its own, whose signals it may change.
template <class Check>
bool holds_in_child(const Check& check) {
  const pid_t process = ::fork();
  if (process == 0) ::_exit(check() ? 0 : 1);
  int status = 0;
  ::waitpid(process, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(SignalSource, ReturnsSignalsInsteadOfDying) {
  EXPECT_TRUE(holds_in_child([] {
    ::signal(SIGTERM, SIG_DFL);
    const SignalSource source;
    if (source.next()) return false;
    ::raise(SIGTERM);
    const auto signal = source.next();
    return signal && signal->number == SIGTERM && !source.next();
  }));
}

TEST(SignalSource, LeavesIgnoredSignalsIgnored) {
  EXPECT_TRUE(holds_in_child([] {
    ::signal(SIGHUP, SIG_IGN);
    const SignalSource source;
    ::raise(SIGHUP);
    return !source.next();
  }));
}

TEST(SignalSource, SeesATerminatingSignalWithoutTakingIt) {
  EXPECT_TRUE(holds_in_child([] {
    ::signal(SIGINT, SIG_DFL);
    ::signal(SIGHUP, SIG_IGN);
    const SignalSource source;
    ::raise(SIGUSR1);
    ::raise(SIGHUP);
    if (source.has_terminating()) return false;
    ::raise(SIGINT);
    if (!source.has_terminating()) return false;
    while (const auto signal = source.next())
      if (signal->number == SIGINT) return !source.has_terminating();
    return false;
  }));
}

TEST(SignalSource, NamesTheChildThatEnded) {
  EXPECT_TRUE(holds_in_child([] {
    ::signal(SIGCHLD, SIG_IGN);
    const SignalSource source;
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    siginfo_t info = {};
    if (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) != 0) return false;
    const auto signal = source.next();
    return signal && signal->number == SIGCHLD && signal->sender == child;
  }));
}

TEST(SignalSource, RestoresMaskAndDispositions) {
  EXPECT_TRUE(holds_in_child([] {
    ::signal(SIGPIPE, SIG_DFL);
    ::signal(SIGCHLD, SIG_IGN);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const SignalSource source;
    source.restore();
    sigset_t mask;
    ::sigprocmask(SIG_SETMASK, nullptr, &mask);
    return ::sigisemptyset(&mask) == 1 && ::signal(SIGPIPE, SIG_DFL) == SIG_DFL &&
           ::signal(SIGCHLD, SIG_DFL) == SIG_IGN;
  }));
}

TEST(SignalSource, GivesRanksTheirSignalsAlsoInsideOfAnother) {
  EXPECT_TRUE(holds_in_child([] {
    const SignalSource outer;
    const SignalSource inner;
    inner.restore();
    sigset_t mask;
    ::sigprocmask(SIG_SETMASK, nullptr, &mask);
    return ::sigismember(&mask, SIGTERM) == 0 && ::sigismember(&mask, SIGINT) == 0;
  }));
}

TEST(IsTerminating, HoldsForTheSignalsThatEndAJob) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) EXPECT_TRUE(is_terminating(signal));
  for (const int signal : {SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD})
    EXPECT_FALSE(is_terminating(signal));
}

}  // namespace
}  // namespace iridium::cli
