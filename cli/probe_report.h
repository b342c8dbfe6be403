// What `iridium probe` has found: as it goes from rank 0 to the command, and to the reader.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "iridium/probe.h"

namespace iridium::cli {

/// What was probed on which ranks.
struct ProbeRun {
  std::string backend;
  int ranks = 0;
  std::size_t cases = 0;
};

/// One operation with its arguments.
struct ProbeRow {
  std::string operation;
  Arguments arguments;
  Verdict expected = Verdict::capturable;
  bool as_expected = true;
  ProbeResult result;
  double milliseconds = 0;
};

struct ProbeReport {
  ProbeRun run;
  std::vector<ProbeRow> rows;  ///< fewer than `run.cases` when the ranks ended early

  bool is_complete() const { return run.cases > 0 && rows.size() == run.cases; }
  std::size_t unexpected() const;
};

// One line each, the run first. What is cut off at the end of a file is not read.
void write(std::ostream& to, const ProbeRun& run);
void write(std::ostream& to, const ProbeRow& row);
ProbeReport read_report(std::istream& from);

/// "count=1 type=float".
std::string text_of(const Arguments& arguments);

/// For people: a table, and a line that sums it up.
std::string as_table(const ProbeReport& report);
/// For programs: an object with the fields "schema", "version", "backend", "ranks", "complete",
/// "as_expected" and "cases".
std::string as_json(std::string_view version, const ProbeReport& report);

}  // namespace iridium::cli
