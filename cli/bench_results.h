// Figures of `iridium bench`: what they say, and the file that holds them (docs/benchmarks.md).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "iridium/matmul_shape.h"
#include "iridium/types.h"

namespace iridium::cli {

/// How one contender did one thing.
struct BenchFigure {
  std::string operation;
  std::string contender = "iridium";  ///< or who else was measured
  std::string algorithm = {};         ///< empty where there is one only
  std::string chosen = {};            ///< what automatic was, where that is known
  std::string dtype = {};             ///< empty where it does not matter
  std::string op = {};                ///< what numbers are reduced by; empty where none are
  std::string memory = {};            ///< "plain" or "symmetric"; empty where there is no choice
  std::string mode = "graph";         ///< "graph" or "eager"
  int ranks = 0;
  std::size_t bytes = 0;                  ///< input of a call on one rank; 0 without payload
  std::optional<MatmulShape> shape = {};  ///< of a product
  std::string layout = {};                ///< of its B: "kn" or "nk"; empty where there is none
  int blocks = 0;                         ///< 0: as the operation chooses
  int rows = 0;                           ///< of a matrix; 0: as the operation chooses, or none
  int tile = 0;  ///< 16-byte vectors a thread has on their way; 0: as the operation chooses
  Link link = Link::shared;     ///< the worst one between two ranks
  bool beside_compute = false;  ///< on a GPU, grids left room for kernels that compute

  /// Why there are no numbers below: not tried, or tried and wrong. One at the most is set.
  std::string skipped = {};
  std::string failed = {};

  std::size_t samples = 0;
  std::size_t calls = 0;  ///< per sample
  // Microseconds per call.
  double median_us = 0;
  double p10_us = 0;
  double p90_us = 0;
  // 10^9 bytes per second; 0 where there is no payload.
  double algorithm_gbps = 0;
  double bus_gbps = 0;
  double tflops = 0;  ///< 10^12 multiplications and additions per second; 0 where there are none
  double copy_share = 0;  ///< of the bandwidth of a plain copy of as many bytes; 0 where unknown

  bool has_numbers() const { return skipped.empty() && failed.empty(); }
};

/// Where figures were taken.
struct BenchMachine {
  std::string name;    ///< a word for folders and tables: "h200x8-nvlink", "cpu-2-cores"
  std::string cpu;     ///< model
  int cores = 0;       ///< of the CPU
  std::string device;  ///< model of the GPU, where one was used
  std::string driver;  ///< its version
};

/// What software a contender is, and what it runs on: versions by name.
using Versions = std::map<std::string, std::string>;

/// What one run of the command found.
struct BenchRun {
  std::string version;  ///< of Iridium
  std::string commit;   ///< that it was built from, where known
  std::string command;  ///< that was given
  BenchMachine machine;
  std::map<std::string, Versions> versions = {};  ///< of peers, by contender
  bool complete = false;                          ///< nothing was cut short
  std::vector<BenchFigure> figures;

  /// Whether a figure's result was wrong, or its ranks died.
  bool has_failed() const;
};

/// The file's text: JSON with one figure per line.
std::string as_json(const BenchRun& run);
/// Throws `invalid_argument`, naming `path`, for text that is cut off, of another version, or not a
/// file of figures.
BenchRun run_from_json(const std::string& text, const std::string& path);
/// Reads the file; throws `system` when that fails, and like `run_from_json`.
BenchRun read_run(const std::string& path);

/// What a peer writes about itself. Throws `invalid_argument`; `where` is how messages begin.
Versions versions_from_json(const std::string& text, const std::string& where);

/// A figure on its way from a rank to the command.
std::string as_line(const BenchFigure& figure);
/// `where` is how messages begin.
BenchFigure figure_from_line(const std::string& line, const std::string& where);

/// One line per figure, with a heading.
std::string as_csv(const BenchRun& run);
/// For people.
std::string as_table(const BenchRun& run);

}  // namespace iridium::cli
