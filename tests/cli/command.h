// Runs the built command line as a user would.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "cli/descriptor.h"

namespace iridium::cli {

/// How a command ended and what it printed.
struct CommandResult {
  int status = -1;  ///< 128 + signal when a signal ended it
  std::string output;
  std::string error;
};

/// What a command is started with besides its arguments.
struct CommandOptions {
  bool error_to_output = false;  ///< standard error goes where standard output goes
  int ignored_signal = 0;        ///< a signal it is started to ignore
};

/// The command line, running, on the host backend unless told otherwise. Whatever it waits for
/// fails the test after half a minute.
class Command {
 public:
  explicit Command(const std::vector<std::string>& arguments, const CommandOptions& options = {});
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command();

  void send_signal(int signal) const;
  /// Stops it as Ctrl-Z does, and returns when it has stopped; SIGCONT lets it go on.
  void stop() const;
  /// Writes to its standard input.
  void write_input(const std::string& text) const;
  /// The next line of its standard output, without the newline.
  std::string read_line();
  /// Stops reading its standard output.
  void close_output() { output_.reset(); }
  /// Closes its standard input, and reads what it prints until it ends.
  CommandResult wait();
  /// Waits until it ends without reading what it prints.
  int wait_without_reading();

 private:
  void read_both();

  pid_t process_ = -1;
  Descriptor input_;
  Descriptor output_;
  Descriptor error_;
  CommandResult result_;
};

/// A file or folder of this process alone: tests that run at the same time may use one name.
std::string temporary_path(const std::string& name);

/// Runs the command line to its end.
CommandResult run_command(const std::vector<std::string>& arguments, const std::string& input = {});

/// `iridium run` with `options` of a shell script on `ranks` ranks.
std::vector<std::string> run_script(int ranks, const std::string& script,
                                    const std::vector<std::string>& options = {});

/// The lines of `text`, sorted: what ranks print comes in any order.
std::vector<std::string> sorted_lines(const std::string& text);

/// Whether the process, which need not be this one's child, ends before the test's patience does.
bool ends(pid_t process);

/// A pipe that every process started during its life inherits, to see when all of them are gone.
class Lifeline {
 public:
  Lifeline();
  /// Whether all processes that hold it end before the test's patience does.
  bool is_cut();

 private:
  Pipe pipe_;
};

/// How many files' names begin with `path`.
std::ptrdiff_t count_files_like(const std::string& path);

}  // namespace iridium::cli
