// Starting the process of a rank.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "cli/guardian.h"
#include "cli/signal_source.h"

namespace iridium::cli {

/// What a process is started with.
struct ProcessPlan {
  const std::vector<std::string>& command;  ///< the program, looked up in PATH, and its arguments
  const std::vector<std::string>& environment;  ///< "NAME=value", all of them
  int input = -1;                               ///< becomes standard input
  int output = -1;                              ///< becomes standard output
  int error = -1;                               ///< becomes standard error
  const SignalSource& signals;                  ///< restored in the process
  const Guardian* guardian = nullptr;           ///< told of the process's group
};

/// What came of it.
struct StartedProcess {
  pid_t process = -1;  ///< also the number of its process group
  int failure = 0;     ///< the `errno` that kept the program from starting, else 0
};

/// Starts a process in a process group of its own; it is killed when the calling thread ends.
/// Returns when the program runs or could not be started.
StartedProcess start_process(const ProcessPlan& plan);

/// How a process ended.
struct ProcessEnd {
  bool by_signal = false;
  int value = 0;  ///< the exit status, or the signal

  bool is_success() const { return !by_signal && value == 0; }
  /// As a shell reports it: 128 + signal when ended by one.
  int status() const { return by_signal ? 128 + value : value; }
  /// "exited with status 3", "was killed by signal 9 (Killed)".
  std::string describe() const;
};

/// Asks whether `process` has ended, and how. It stays a zombie, so that its number and that of its
/// group are not given to anybody else.
bool has_ended(pid_t process, ProcessEnd& end);

}  // namespace iridium::cli
