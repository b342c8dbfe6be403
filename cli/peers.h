// `iridium info --peers`: what lies between the ranks of a job, measured.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/peer_meter.h"
#include "cli/run.h"

namespace iridium::cli {

/// What `iridium info --peers` is asked to do.
struct PeersCommand {
  RunOptions job = {};
  std::string format = "table";  ///< "table" or "json"
};

struct PeersReport {
  std::string backend = {};
  std::vector<int> devices = {};  ///< of each rank; -1 on CPUs
  std::vector<PeerFigures> pairs = {};

  int ranks() const { return static_cast<int>(devices.size()); }
  /// Whether every pair was measured and gave what was expected.
  bool is_well() const;
};

// One line each, the job first. What is cut off at the end of a file is not read; pairs come out
// in the order of their ranks.
std::string as_line(const std::string& backend, const std::vector<int>& devices);
std::string as_line(const PeerFigures& figures);
PeersReport read_peers(std::istream& from);

/// What a reader should look into: pairs that are wrong, could not be measured, or are slow for
/// their link or beside others with the same one; then the usual causes.
std::vector<std::string> peer_hints(const PeersReport& report);
/// For people: a table of rows and columns for every figure, then the hints.
std::string peers_as_table(const PeersReport& report);
/// For programs: an object with the fields "schema", "version", "backend", "devices", "pairs",
/// "hints" and "well".
std::string peers_as_json(std::string_view version, const PeersReport& report);

/// Starts the ranks, prints what they found, and returns the status to exit with: 0 when all is
/// well.
int show_peers(const PeersCommand& command);
/// What every rank of the job does; rank 0 writes what they find to the file `rows`.
int peers_as_rank(const std::string& rows);

}  // namespace iridium::cli
