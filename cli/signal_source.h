// Signals as events of a poll loop.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>

#include "cli/descriptor.h"

namespace iridium::cli {

/// A signal that has arrived.
struct ArrivedSignal {
  int number = 0;
  pid_t sender = 0;  ///< for SIGCHLD the child
};

/// Whether ranks are expected to end after this signal: SIGINT, SIGTERM or SIGHUP.
bool is_terminating(int signal);

/// Reads SIGCHLD and the signals `iridium run` forwards from a descriptor instead of being
/// interrupted by them, and ignores SIGPIPE, for the rest of the process. A signal the process was
/// started to ignore, such as SIGHUP under nohup, stays ignored.
class SignalSource {
 public:
  SignalSource();

  /// Polls readable when a signal has arrived.
  int descriptor() const { return descriptor_.number(); }
  /// The next signal, if one has arrived.
  std::optional<ArrivedSignal> next() const;
  /// Whether a terminating signal has arrived that `next` has not returned yet.
  bool has_terminating() const;
  /// Puts signal mask and dispositions back as they were. For a child between fork and exec.
  void restore() const noexcept;

 private:
  sigset_t received_;
  sigset_t mask_before_;
  struct sigaction pipe_before_;
  struct sigaction child_before_;
  Descriptor descriptor_;
};

}  // namespace iridium::cli
