// `iridium probe`: proves what can be captured on this machine.
#pragma once

#include <string>
#include <vector>

#include "cli/run.h"

namespace iridium::cli {

/// What `iridium probe` is asked to do.
struct ProbeCommand {
  RunOptions job = {};                       ///< ranks, backend, timeout
  std::vector<std::string> operations = {};  ///< by name; empty: all
  std::string format = "table";              ///< "table" or "json"
  std::string rows = {};  ///< set on a rank: the file to which rank 0 writes what it finds
};

/// Adds the subcommand to `line`; the parser fills `command`.
Subcommand add_probe(CommandLine& line, ProbeCommand& command);

/// Starts the ranks, prints what they found, and returns the status to exit with: 0 when every
/// verdict is the expected one.
int probe(const ProbeCommand& command);

/// What every rank of the job does.
int probe_as_rank(const ProbeCommand& command);

}  // namespace iridium::cli
