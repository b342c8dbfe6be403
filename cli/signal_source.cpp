#include "cli/signal_source.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>

namespace iridium::cli {
namespace {

constexpr int forwarded_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

bool is_ignored(int signal) {
  struct sigaction action = {};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

void set_disposition(int signal, void (*handler)(int), struct sigaction& before) {
  struct sigaction action = {};
  action.sa_handler = handler;
  if (::sigaction(signal, &action, &before) != 0) throw_system_error("cannot set a signal handler");
}

}  // namespace

bool is_terminating(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
}

SignalSource::SignalSource() {
  ::sigemptyset(&received_);
  ::sigaddset(&received_, SIGCHLD);
  for (const int signal : forwarded_signals)
    if (!is_ignored(signal)) ::sigaddset(&received_, signal);

  // Where SIGCHLD is ignored, children vanish without leaving their status.
  set_disposition(SIGCHLD, SIG_DFL, child_before_);
  set_disposition(SIGPIPE, SIG_IGN, pipe_before_);
  if (::sigprocmask(SIG_BLOCK, &received_, &mask_before_) != 0)
    throw_system_error("cannot block signals");
  descriptor_ = Descriptor(::signalfd(-1, &received_, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor_.is_open()) throw_system_error("cannot make a signal descriptor");
}

std::optional<ArrivedSignal> SignalSource::next() const {
  signalfd_siginfo info = {};
  if (::read(descriptor_.number(), &info, sizeof info) != ssize_t{sizeof info}) return {};
  return ArrivedSignal{.number = static_cast<int>(info.ssi_signo),
                       .sender = static_cast<pid_t>(info.ssi_pid)};
}

bool SignalSource::has_terminating() const {
  sigset_t pending;
  if (::sigpending(&pending) != 0) throw_system_error("cannot look at signals");
  return std::ranges::any_of(forwarded_signals, [&](int signal) {
    return is_terminating(signal) && ::sigismember(&received_, signal) == 1 &&
           ::sigismember(&pending, signal) == 1;
  });
}

void SignalSource::restore() const noexcept {
  ::sigaction(SIGCHLD, &child_before_, nullptr);
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  // Also where another source had blocked them before this one.
  ::sigprocmask(SIG_UNBLOCK, &received_, nullptr);
}

}  // namespace iridium::cli
