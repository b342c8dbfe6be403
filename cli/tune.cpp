#include "cli/tune.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <optional>
#include <sstream>

#include "cli/bench.h"
#include "cli/bench_axes.h"
#include "cli/bench_machine.h"
#include "cli/command_line.h"
#include "cli/names.h"
#include "cli/output_file.h"
#include "cli/rank_environment.h"
#include "cli/signal_source.h"
#include "cli/tune_products.h"
#include "iridium/bootstrap.h"
#include "iridium/errors.h"
#include "iridium/numbers.h"
#include "iridium/operations.h"

namespace iridium::cli {
namespace {

using Words = std::vector<std::string>;

/// What a table can say at most.
constexpr int most_blocks = 1024;

/// All that a command line can leave out, so that a run ends in minutes. The current table's grids
/// are measured besides. Checks of large messages take long, on CPUs above all.
struct Defaults {
  const char* ranks;
  const char* bytes;
  const char* blocks;
  const char* shapes;
};
constexpr Defaults gpu_defaults = {
    "2,4,8", "4K:16M", "8,16,64",
    "16x4096x4096,64x4096x4096,256x4096x4096,1024x4096x4096,4096x4096x4096"};
constexpr Defaults host_defaults = {"2,4", "4K:1M", "1,2", "1x512x512,16x512x512,128x512x512"};
constexpr const char* default_layout = "nk";

bool is_product(std::string_view operation) {
  return operation == product_operation;
}

/// Throws for options of operations that are not asked for.
void check_options(const TuneCommand& command) {
  const bool has_products = std::ranges::any_of(command.operations, is_product);
  if (!has_products && (!command.shapes.empty() || !command.layout.empty()))
    throw Error(
        Errc::invalid_argument,
        fmt::format("--shape and --layout are for {}, which is not asked for", product_operation));
  const bool has_collectives =
      command.operations.empty() || !std::ranges::all_of(command.operations, is_product);
  for (const auto& [option, text] : {std::pair("-n", &command.ranks),
                                     {"--bytes", &command.bytes},
                                     {"--blocks", &command.blocks},
                                     {"--tile", &command.tile}})
    if (!has_collectives && !text->empty())
      throw Error(Errc::invalid_argument,
                  fmt::format("{} says nothing of {}, which is measured on one rank", option,
                              product_operation));
}

void set_defaults(TuneCommand& command, const std::string& backend) {
  const Defaults& defaults = backend == "host" ? host_defaults : gpu_defaults;
  if (command.shapes.empty()) command.shapes = {defaults.shapes};
  if (command.layout.empty()) command.layout = default_layout;
  if (command.ranks.empty()) command.ranks = defaults.ranks;
  if (command.bytes.empty()) command.bytes = defaults.bytes;
  if (command.blocks.empty()) command.blocks = defaults.blocks;
  if (command.operations.empty()) command.operations = tuned_operations();
}

bool contains(const Words& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

/// "a,b" as words, each once.
Words parse_words(std::string_view option, const std::string& text) {
  const auto refuse = [&](const std::string& reason) {
    throw Error(Errc::invalid_argument, fmt::format("{} is '{}': {}", option, text, reason));
  };
  Words words;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    if (part.empty()) refuse("a value is empty");
    if (contains(words, part)) refuse(part + " stands twice");
    words.push_back(part);
  }
  if (words.empty() || text.back() == ',') refuse("a value is missing");
  return words;
}

const Operation& operation_of(const std::string& name) {
  Words tuned = tuned_operations();
  tuned.emplace_back(product_operation);
  const auto found = std::ranges::find(operations(), name, &Operation::name);
  if (found != operations().end() && contains(tuned, name)) return *found;
  if (found == operations().end()) refuse_name("operation", name, tuned);
  throw Error(Errc::invalid_argument,
              fmt::format("the tuning table has nothing to decide for {}; it knows {}", name,
                          fmt::join(tuned, ", ")));
}

std::vector<const Operation*> operations_of(const TuneCommand& command) {
  std::vector<const Operation*> chosen;
  for (const std::string& name : command.operations) {
    const Operation& operation = operation_of(name);
    if (std::ranges::find(chosen, &operation) != chosen.end())
      throw Error(Errc::invalid_argument, fmt::format("{} stands twice", name));
    chosen.push_back(&operation);
  }
  return chosen;
}

/// Empty where it has no such parameter.
Words values_of(const Operation& operation, const std::string& parameter) {
  const auto found = std::ranges::find(operation.parameters, parameter, &Parameter::name);
  return found == operation.parameters.end() ? Words() : found->values;
}

/// The algorithms of all the operations that can be asked for.
Words algorithms_of(const std::vector<const Operation*>& chosen) {
  Words names;
  for (const Operation* operation : chosen)
    for (const std::string& name : values_of(*operation, "algorithm"))
      if (name != "automatic" && !contains(names, name)) names.push_back(name);
  return names;
}

/// Whether `all` means it. A table must not make the bits of results depend on the run, or on what
/// version of a library is installed.
bool keeps_bits(const std::string& algorithm) {
  return algorithm != "ring" && algorithm != "atomic" && algorithm != "cublas";
}

/// What the command asks for, once for all tasks.
struct Axes {
  std::vector<int> ranks;
  std::vector<std::size_t> sizes;
  Words memories;
  std::optional<Words> algorithms;  ///< none: all that keep bits
  Words blocks;
  Words tiles;
};

Words numbers_of(std::string_view option, const std::string& text, int most) {
  Words numbers;
  for (const int number : parse_numbers(option, text, 1, most))
    numbers.push_back(std::to_string(number));
  return numbers;
}

Words tiles_of(const TuneCommand& command, const std::vector<const Operation*>& chosen) {
  if (command.tile.empty()) return {};
  const Words tiles = numbers_of("--tile", command.tile, 4);
  if (contains(tiles, "3"))
    throw Error(Errc::invalid_argument,
                fmt::format("--tile is '{}': a tile is 1, 2 or 4 vectors", command.tile));
  if (std::ranges::all_of(chosen,
                          [](const Operation* one) { return values_of(*one, "tile").empty(); }))
    throw Error(Errc::invalid_argument, "--tile: none of the operations has a choice of tiles");
  return tiles;
}

std::optional<Words> algorithms_asked(const TuneCommand& command,
                                      const std::vector<const Operation*>& chosen) {
  if (command.algorithm == "all") return std::nullopt;
  const Words known = algorithms_of(chosen);
  Words asked = parse_words("--algorithm", command.algorithm);
  for (const std::string& name : asked)
    if (!contains(known, name)) refuse_name("algorithm", name, known);
  return asked;
}

Words memories_of(const TuneCommand& command) {
  Words memories = parse_words("--memory", command.memory);
  for (const std::string& memory : memories)
    if (memory != "plain" && memory != "symmetric")
      refuse_name("memory", memory, {"plain", "symmetric"});
  return memories;
}

Axes axes_of(const TuneCommand& command, const std::vector<const Operation*>& chosen) {
  // Throws for what is none.
  parse_data_type(command.dtype);
  return {.ranks = parse_numbers("-n", command.ranks, 2, max_ranks),
          .sizes = parse_sizes("--bytes", command.bytes),
          .memories = memories_of(command),
          .algorithms = algorithms_asked(command, chosen),
          .blocks = numbers_of("--blocks", command.blocks, most_blocks),
          .tiles = tiles_of(command, chosen)};
}

/// What the current table chooses in the cases of a task.
std::vector<Choice> choices_of(const std::string& operation, const std::string& memory,
                               const Axes& axes, const TunedDevice& device,
                               const TuningTable& current) {
  std::vector<Choice> choices;
  for (const int members : axes.ranks)
    for (const std::size_t bytes : axes.sizes)
      for (const Link link : device.links)
        choices.push_back(current.choose({.operation = operation,
                                          .symmetric = memory == "symmetric",
                                          .backend = device.backend,
                                          .device = device.name,
                                          .members = members,
                                          .bytes = largest_buffer(operation, bytes, members),
                                          .link = link}));
  return choices;
}

/// The operation's algorithms among those asked for; `automatic` besides, unless they contain all
/// that the current table chooses, since others are compared with that.
Words algorithms_for(const Operation& operation, const Axes& axes,
                     const std::vector<Choice>& choices) {
  Words names;
  for (const std::string& name : values_of(operation, "algorithm"))
    if (name != "automatic" &&
        (axes.algorithms ? contains(*axes.algorithms, name) : keeps_bits(name)))
      names.push_back(name);
  if (!std::ranges::all_of(choices,
                           [&](const Choice& one) { return contains(names, one.algorithm); }))
    names.emplace_back("automatic");
  return names;
}

/// What the table has now, and those asked for that it does not have everywhere.
Words beside_current(const Words& asked, const std::vector<Choice>& choices, int Choice::* now) {
  Words values = {"automatic"};
  for (const std::string& value : asked)
    if (!std::ranges::all_of(choices,
                             [&](const Choice& one) { return std::to_string(one.*now) == value; }))
      values.push_back(value);
  return values;
}

Words settings_for(const Operation& operation, const std::string& memory,
                   const TuneCommand& command, const Axes& axes,
                   const std::vector<Choice>& choices) {
  Words settings = {
      "memory=" + memory, "dtype=" + command.dtype,
      fmt::format("blocks={}",
                  fmt::join(beside_current(axes.blocks, choices, &Choice::blocks), ","))};
  if (!values_of(operation, "algorithm").empty())
    settings.push_back(
        fmt::format("algorithm={}", fmt::join(algorithms_for(operation, axes, choices), ",")));
  if (!values_of(operation, "tile").empty())
    settings.push_back(
        fmt::format("tile={}", fmt::join(beside_current(axes.tiles, choices, &Choice::tile), ",")));
  return settings;
}

BenchCommand bench_command(const TuneCommand& command, const std::string& operation,
                           Words settings) {
  BenchCommand bench;
  bench.job = command.job;
  bench.operations = {operation};
  bench.bytes = command.bytes;
  bench.settings = std::move(settings);
  bench.baselines = {};
  bench.samples = command.samples;
  bench.sample_milliseconds = command.sample_milliseconds;
  return bench;
}

/// Products compete on one rank: what others do beside them is nothing that a row could name.
BenchTask product_task(const TuneCommand& command, const Operation& operation,
                       const std::optional<Words>& asked) {
  Words algorithms = {"automatic"};
  for (const std::string& name : values_of(operation, "algorithm"))
    if (name != "automatic" && (asked ? contains(*asked, name) : keeps_bits(name)))
      algorithms.push_back(name);
  BenchCommand bench = bench_command(command, operation.name,
                                     {"dtype=" + command.dtype, "layout=" + command.layout,
                                      fmt::format("algorithm={}", fmt::join(algorithms, ","))});
  bench.shapes = command.shapes;
  std::vector<BenchHeat> heats = plan(bench);
  return {std::move(bench), std::move(heats), {1}};
}

/// The one that ranks will find; throws where there is none.
TunedDevice device_for(const RunOptions& job) {
  const std::string asked = backend_of_ranks(job);
  const std::optional<BackendInfo> info = backend_for(asked);
  if (!info)
    throw Error(Errc::unsupported,
                fmt::format("tune: there is no backend '{}' here; iridium info says why", asked));
  const std::vector<DeviceInfo> devices = info->usable_devices();
  TunedDevice device = {std::string(name(info->kind)), tuning_device(devices[0].name)};
  // Which ranks a link lies between shows when they are there.
  if (devices.size() > 1 || std::getenv("IRIDIUM_LINK") != nullptr)
    device.links = {Link::shared, Link::nvlink, Link::pcie};
  return device;
}

Words comments_of(const BenchRun& run) {
  return {"A tuning table for IRIDIUM_TUNING_TABLE; include/iridium/tuning.h says how it is read.",
          fmt::format("version: iridium {}{}{}", run.version, run.commit.empty() ? "" : ", commit ",
                      run.commit),
          "machine: " + machine_text(run.machine),
          fmt::format("date: {:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))),
          "command: iridium " + run.command};
}

int report(const BenchRun& run, const TunedDevice& device, const std::optional<OutputFile>& file) {
  const TunedCases tuned = decide(run.figures, device, tuning_table());
  const TunedProducts products = decide_products(run.figures);
  for (const Words* notes : {&tuned.notes, &products.notes})
    for (const std::string& note : *notes) std::cerr << "iridium tune: " << note << "\n";
  const std::vector<TunedRow> rows = rows_of(tuned.cases);
  const std::vector<TunedProductRow> product_rows = rows_of(products.products);
  std::size_t largest = 0;
  for (const TunedCase& one : tuned.cases) largest = std::max(largest, one.bytes);
  if (largest > 0)
    std::cerr << fmt::format(
        "iridium tune: nothing over {} was measured; the last row of each kind decides there, "
        "too\n",
        size_text(largest));
  if (rows.empty() && product_rows.empty())
    throw Error(Errc::system, "tune: no case has a figure; no table is written");
  const std::string table =
      comment_lines(comments_of(run)) + table_text(rows, device) + table_text(product_rows, device);
  const std::string summary = summary_text(rows) + summary_text(product_rows);
  if (file) {
    file->write(table);
    print(summary);
  } else {
    std::cerr << summary;
    print(table);
  }
  return run.has_failed() ? 1 : 0;
}

}  // namespace

Subcommand add_tune(CommandLine& line, TuneCommand& command) {
  Subcommand tune =
      line.add("tune",
               "Measures collectives or matrix products, and writes a tuning table for this "
               "machine.");
  const auto add = [&tune](const char* name, std::string& value, const std::string& text,
                           const char* values) {
    tune.add(name, value, text).last_counts().value_name(values);
  };
  tune.add("operations", command.operations,
           fmt::format("What to tune: {}, or {}. The default is all collectives.",
                       fmt::join(tuned_operations(), ", "), product_operation))
      .value_name("OPERATION...");
  add("-n", command.ranks,
      fmt::format("The numbers of ranks, from 2 to {}. The default is {} on GPUs and {} on CPUs.",
                  max_ranks, gpu_defaults.ranks, host_defaults.ranks),
      "N[,N...]");
  add_job_options(tune, command.job);
  add("--bytes", command.bytes,
      fmt::format("Sizes of a rank's input: 64K, 4K,1M, or a range 4K:64M, in which every size is "
                  "four times the one before (4K:64M:x2: twice). The default is {} on GPUs and {} "
                  "on CPUs.",
                  gpu_defaults.bytes, host_defaults.bytes),
      "SIZES");
  add("--memory", command.memory, "Kinds of memory. The default is plain,symmetric.",
      "KIND[,KIND...]");
  add("--dtype", command.dtype, "The type of elements. The default is bf16.", "TYPE");
  tune.add(
          "--shape", command.shapes,
          fmt::format("Shapes of products, M, N and K: 4096x3584x8192, or several with commas; may "
                      "be given several times. The default is {} on GPUs and {} on CPUs.",
                      gpu_defaults.shapes, host_defaults.shapes))
      .one_value_each()
      .value_name("MxNxK");
  add("--layout", command.layout,
      fmt::format("How B of products is stored: nk or kn. The default is {}.", default_layout),
      "LAYOUT[,LAYOUT...]");
  add("--algorithm", command.algorithm,
      "Algorithms to choose from. The default is all, which leaves out ring and atomic, whose "
      "results have other bits, and cublas, whose depend on its version.",
      "NAME[,NAME...]");
  add("--blocks", command.blocks,
      fmt::format("Grids to choose from besides the current table's, up to {} blocks. The default "
                  "is {} on GPUs and {} on CPUs.",
                  most_blocks, gpu_defaults.blocks, host_defaults.blocks),
      "COUNT[,COUNT...]");
  add("--tile", command.tile,
      "Tiles to choose from besides the current table's: 1, 2 or 4 vectors of 16 bytes per thread. "
      "The default is none.",
      "VECTORS[,VECTORS...]");
  add_sampling_options(tune, command.samples, command.sample_milliseconds);
  add("--out", command.out, "Writes the table to this file instead of standard output.", "FILE");
  tune.footer(
      "Whatever has a right result is compared with what the current table chooses, by the median\n"
      "of replays; the choice changes where another is faster by more than 3 % and the noise, and\n"
      "the samples of both do not overlap. The status is 1 when a figure has failed.\n"
      "\n"
      "Example: iridium tune -n 2,4,8 --out tuning.txt; export IRIDIUM_TUNING_TABLE=tuning.txt");
  return tune;
}

std::vector<BenchTask> plan_tune(const TuneCommand& command, const TunedDevice& device,
                                 const TuningTable& current) {
  const std::vector<const Operation*> chosen = operations_of(command);
  std::vector<const Operation*> collectives = chosen;
  std::erase_if(collectives, [](const Operation* one) { return is_product(one->name); });
  std::vector<BenchTask> tasks;
  if (collectives.size() != chosen.size())
    tasks.push_back(product_task(command, operation_of(std::string(product_operation)),
                                 algorithms_asked(command, chosen)));
  if (collectives.empty()) return tasks;
  const Axes axes = axes_of(command, chosen);
  // Kinds of memory never compete. A task each: heats need less of it at a time.
  for (const Operation* operation : collectives)
    for (const std::string& memory : axes.memories) {
      const std::vector<Choice> choices =
          choices_of(operation->name, memory, axes, device, current);
      BenchCommand bench = bench_command(command, operation->name,
                                         settings_for(*operation, memory, command, axes, choices));
      std::vector<BenchHeat> heats = plan(bench);
      tasks.push_back({std::move(bench), std::move(heats), axes.ranks});
    }
  return tasks;
}

int tune(TuneCommand command) {
  // Before the driver is asked: threads that it starts would take signals that launchers wait for.
  const SignalSource signals;
  check_options(command);
  const TunedDevice device = device_for(command.job);
  set_defaults(command, device.backend);
  const std::vector<BenchTask> tasks = plan_tune(command, device, tuning_table());
  std::optional<OutputFile> file;
  if (!command.out.empty()) file.emplace(command.out);

  BenchRun run = begin_run(command.text);
  const BenchJobEnd end = run_bench_jobs(tasks, run);
  if (end.was_interrupted) {
    std::cerr << "iridium tune: interrupted; no table is written\n";
    return end.status;
  }
  const int status = report(run, device, file);
  return end.status != 0 ? end.status : status;
}

}  // namespace iridium::cli
