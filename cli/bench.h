// `iridium bench`: measures operations, beside others, and checks every result.
#pragma once

#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench_results.h"
#include "cli/run.h"
#include "iridium/context.h"
#include "iridium/operations.h"

namespace iridium::cli {

/// What `iridium bench` is asked to do.
struct BenchCommand {
  RunOptions job = {.command = "bench"};     ///< backend, timeout
  std::string ranks = {};                    ///< "2,4,8"
  std::vector<std::string> operations = {};  ///< by name
  std::string bytes = "4K:64M";              ///< of operations with a payload
  std::vector<std::string> shapes = {};      ///< of products: "4096x3584x8192"
  std::vector<std::string> settings = {};    ///< "blocks=8,16"
  std::vector<std::string> baselines = {"memory_copy", "copy_kernel", "gather_copies"};
  std::vector<std::string> peers = {};  ///< commands of other libraries' programs
  int samples = 15;
  double sample_milliseconds = 20;
  std::string format = "table";           ///< "table", "json" or "csv"
  std::string out = {};                   ///< file for the JSON
  std::vector<std::string> compare = {};  ///< two files to compare instead of measuring
  double threshold = 0.05;                ///< what a comparison tolerates
  // Set on a rank: the file to which rank 0 writes what it finds, and where peers take turns.
  std::string rows = {};
  std::vector<std::string> turns = {};
  std::size_t first_heat = 0;
  std::string text = {};  ///< the command as it was given, without --out
};

/// How often contenders take turns in a heat.
inline constexpr int bench_rounds = 5;

/// What takes turns: contenders that do the same thing to as many bytes, or to matrices of one
/// shape.
struct BenchHeat {
  struct Entry {
    std::string contender;
    const Operation* operation = nullptr;
    Arguments arguments = {};
  };

  std::string operation;
  std::size_t bytes = 0;                  ///< 0 for operations without payload
  std::optional<MatmulShape> shape = {};  ///< of products
  // Empty where the operation has no such parameter.
  std::string dtype = {};
  std::string op = {};
  std::string layout = {};
  std::vector<Entry> entries = {};
};

/// How contenders are measured: as replays of a graph, and as eager calls.
inline constexpr const char* bench_modes[] = {"graph", "eager"};

/// How many figures a heat has, without those of peers.
inline std::size_t figure_count(const BenchHeat& heat) {
  return std::size(bench_modes) * heat.entries.size();
}

/// Adds --samples and --sample-time to a subcommand that measures; they have their defaults.
void add_sampling_options(Subcommand& command, int& samples, double& sample_milliseconds);

/// Adds the subcommand to `line`; the parser fills `command`.
Subcommand add_bench(CommandLine& line, BenchCommand& command);

/// Shapes for products on this backend where none are given: what ends soon.
std::vector<std::string> default_shapes(const std::string& backend);

/// What is to be measured of these operations. Throws `invalid_argument` for what cannot be.
std::vector<BenchHeat> plan(const BenchCommand& command,
                            const std::vector<Operation>& known = operations());

/// Whether the figure is one of this heat.
bool is_of(const BenchFigure& figure, const BenchHeat& heat);

/// A figure of the entry without numbers.
BenchFigure blank_figure(const BenchHeat& heat, const BenchHeat::Entry& entry, int ranks,
                         const std::string& mode);

std::vector<std::string> names_of(const std::vector<Operation>& list);

/// Measures or compares, prints what came out, and returns the status to exit with: 0 when every
/// figure that was asked for is there or could not be tried, or the comparison has found nothing
/// worse.
int bench(const BenchCommand& command);

/// What every rank of a job does.
int bench_as_rank(const BenchCommand& command);

/// Measures the heat's contenders, and peers, in turns: two figures of each contender, one of
/// replays and one of eager calls. `number`: which heat of the plan it is. Collective over the
/// world.
std::vector<BenchFigure> run_heat(Context& context, StreamRef& stream, const BenchHeat& heat,
                                  std::size_t number, const BenchCommand& command);

}  // namespace iridium::cli
