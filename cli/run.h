// `iridium run`: starts the ranks of a job on this host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"

namespace iridium::cli {

/// What `iridium run` is asked to do.
struct RunOptions {
  std::string command = "run";  ///< in front of messages: "iridium run: …"
  int ranks = 0;
  std::string backend = {};                 ///< "auto", "cuda", "host", or empty: as inherited
  std::optional<double> timeout = {};       ///< seconds
  double grace = 5.0;                       ///< seconds from asking ranks to end to killing them
  std::string mps = "auto";                 ///< "auto", "on" or "off": a private MPS daemon
  std::string program = {};                 ///< looked up in PATH
  std::vector<std::string> arguments = {};  ///< what the program is called with
};

/// Adds the options that say how ranks are started, which all commands that start some share.
void add_job_options(Subcommand& command, RunOptions& options);
/// Adds the option for their number.
void add_rank_option(Subcommand& command, RunOptions& options);

/// Adds the subcommand to `line`. The parser fills `options` except for the program's
/// arguments, which are not for it to read (see `split_run_arguments`).
Subcommand add_run(CommandLine& line, RunOptions& options);

/// The arguments of `iridium run`, cut behind the program.
struct RunArguments {
  std::vector<std::string> for_parser;   ///< options and the program
  std::vector<std::string> for_program;  ///< passed on as they are
};

/// Cuts `arguments`, which follow the word "run", where the options of `run` say that the program
/// stands.
RunArguments split_run_arguments(const Subcommand& run, const std::vector<std::string>& arguments);

/// Runs the job and returns the status to exit with.
int run(const RunOptions& options);

}  // namespace iridium::cli
