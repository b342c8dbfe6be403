// `iridium tune`: measures collectives and products, and writes a tuning table for this machine.
#pragma once

#include <string>
#include <vector>

#include "cli/bench_job.h"
#include "cli/run.h"
#include "cli/tune_rows.h"

namespace iridium::cli {

/// What `iridium tune` is asked to do.
struct TuneCommand {
  RunOptions job = {.command = "tune"};      ///< backend, timeout
  std::vector<std::string> operations = {};  ///< all collectives, where none is given
  // Empty: what ends in minutes on the backend.
  std::string ranks = {};
  std::string bytes = {};
  std::string blocks = {};
  std::string tile = {};  ///< empty: as the current table has it
  std::string algorithm = "all";
  std::string memory = "plain,symmetric";
  std::string dtype = "bf16";
  std::vector<std::string> shapes = {};  ///< of products
  std::string layout = {};               ///< of their B
  int samples = 10;
  double sample_milliseconds = 5;
  std::string out = {};   ///< file for the table; standard output where it is empty
  std::string text = {};  ///< the command as it was given, without --out
};

/// Adds the subcommand to `line`; the parser fills `command`.
Subcommand add_tune(CommandLine& line, TuneCommand& command);

/// What is to be measured of every operation and kind of memory, beside what `current` chooses; of
/// products on one rank. Throws `invalid_argument` for what cannot be.
std::vector<BenchTask> plan_tune(const TuneCommand& command, const TunedDevice& device,
                                 const TuningTable& current);

/// Measures, writes the table, and returns the status to exit with: 0 when every figure that was
/// asked for is there or could not be tried. A run that was interrupted writes nothing.
int tune(TuneCommand command);

}  // namespace iridium::cli
