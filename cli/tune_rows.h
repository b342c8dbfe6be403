// From the figures of `iridium tune` to the rows of a tuning table.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench_results.h"
#include "iridium/tuning.h"

namespace iridium::cli {

/// The operations that the tuning table decides on.
std::vector<std::string> tuned_operations();

/// Bytes of the largest buffer, which the table goes by, of a call whose input has `bytes`.
std::size_t largest_buffer(const std::string& operation, std::size_t bytes, int members);

/// Whom rows are for.
struct TunedDevice {
  std::string backend;  ///< "host"
  std::string name;     ///< as `tuning_device` writes it
  /// That teams can have, as far as is known before there are any.
  std::vector<Link> links = {Link::shared};

  /// What rows name: a GPU's own name. CPUs are known by their backend.
  const std::string& word() const { return backend == "host" ? backend : name; }
};

/// What the figures of one case say.
struct TunedCase {
  std::string operation;
  std::string memory;
  int members = 0;
  std::size_t bytes = 0;     ///< of the largest buffer
  Link link = Link::shared;  ///< the worst one between two members
  Choice before = {};        ///< the current table's
  Choice after = {};
  // Microseconds of a call; 0 when that is not known, and the choice stays.
  double before_us = 0;
  double after_us = 0;
  bool is_unsteady = false;  ///< a lower median was not taken: samples of both overlap
};

/// Cases, and what they leave out.
struct TunedCases {
  std::vector<TunedCase> cases;
  std::vector<std::string> notes;  ///< for people, a line each
};

/// What another choice than the current one promises.
enum class Gain {
  none,
  unsteady,  ///< a lower median, but samples of both overlap
  clear,
};
/// By the replays of both: faster by more than 3 % and the noise, and the other's 90th percentile
/// below the current one's 10th.
Gain gain_of(const BenchFigure& other, const BenchFigure& current);

/// Decides every case of collectives that the figures are about, by the replays of Iridium's own
/// that have a right result. Another choice than the current table's must be a clear gain. Figures
/// with more blocks than a row can bring about do not count.
TunedCases decide(const std::vector<BenchFigure>& figures, const TunedDevice& device,
                  const TuningTable& current);

/// A row, and the cases it was made from.
struct TunedRow {
  std::string operation;
  std::string memory;
  std::string link;                       ///< as `tuning_link` has it
  std::optional<int> members = {};        ///< at most; none: any
  std::optional<std::size_t> bytes = {};  ///< at most; none: any
  Choice choice = {};
  std::vector<TunedCase> cases = {};
};

/// Rows in the order in which a table needs them, for each link: by members, then bytes.
/// Neighbouring sizes with the same choice share one; between two sizes that do not, the limit is
/// their geometric middle. Operations on a kind of memory and a link of which nothing is known have
/// none.
std::vector<TunedRow> rows_of(std::vector<TunedCase> cases);

/// A line for each.
std::string comment_lines(const std::vector<std::string>& comments);
/// The rows as lines of a table; empty without rows.
std::string table_text(const std::vector<TunedRow>& rows, const TunedDevice& device);
/// For people: how long calls take with the current table and with the rows, over the sizes that
/// were measured (geometric means); empty without rows.
std::string summary_text(const std::vector<TunedRow>& rows);

/// "64K": as tables have it.
std::string bytes_word(std::size_t bytes);
/// The limit of a row that ends between two sizes.
std::size_t geometric_middle(std::size_t a, std::size_t b);

}  // namespace iridium::cli
