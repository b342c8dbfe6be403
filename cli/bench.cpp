#include "cli/bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "cli/bench_axes.h"
#include "cli/bench_compare.h"
#include "cli/bench_job.h"
#include "cli/bench_machine.h"
#include "cli/bench_results.h"
#include "cli/command_line.h"
#include "cli/output_file.h"
#include "cli/rank_environment.h"
#include "cli/signal_source.h"
#include "iridium/bootstrap.h"
#include "iridium/errors.h"

namespace iridium::cli {
namespace {

std::string text_of(const BenchRun& run, const std::string& format) {
  if (format == "json") return as_json(run);
  return format == "csv" ? as_csv(run) : as_table(run);
}

int compare_files(const BenchCommand& command) {
  constexpr int cannot_compare = 2;
  try {
    const Comparison comparison =
        compare(read_run(command.compare[0]), read_run(command.compare[1]), command.threshold);
    print(as_table(comparison));
    if (comparison.pairs.empty() && !comparison.only_before.empty() &&
        !comparison.only_after.empty())
      throw Error(
          Errc::invalid_argument,
          "the runs have no figure in common: their operations, or the conditions that they "
          "were taken under (link, beside compute), differ");
    return comparison.is_worse() ? 1 : 0;
  } catch (const Error& error) {
    std::cerr << "iridium: " << error.what() << "\n";
    return cannot_compare;
  }
}

/// Ranks must measure the same.
void set_default_shapes(BenchCommand& command) {
  const auto has_shape = [&](const Operation& operation) {
    return std::ranges::find(command.operations, operation.name) != command.operations.end() &&
           std::ranges::find(operation.parameters, "shape", &Parameter::name) !=
               operation.parameters.end();
  };
  if (!command.shapes.empty() || std::ranges::none_of(operations(), has_shape)) return;
  const std::optional<BackendInfo> info = backend_for(backend_of_ranks(command.job));
  // Making a context says why there is none.
  command.shapes = default_shapes(info ? std::string(name(info->kind)) : "host");
}

int measure(BenchCommand command) {
  // Before the driver is asked: threads that it starts would take signals that launchers wait for.
  const SignalSource signals;
  const std::vector<int> ranks = parse_numbers("-n", command.ranks, 1, max_ranks);
  set_default_shapes(command);
  const std::vector<BenchHeat> heats = plan(command);
  std::optional<OutputFile> file;
  if (!command.out.empty()) file.emplace(command.out);

  BenchRun run = begin_run(command.text);
  const BenchTask task = {command, heats, ranks};
  const BenchJobEnd end = run_bench_jobs({&task, 1}, run);
  if (end.never_began)
    throw Error(Errc::system, "bench: no rank could make a context; nothing was measured");

  std::exception_ptr problem;
  try {
    if (file) file->write(as_json(run));
  } catch (const Error&) {
    problem = std::current_exception();
  }
  print(text_of(run, command.format));
  if (problem) std::rethrow_exception(problem);
  if (end.status != 0) return end.status;
  if (run.has_failed()) return 1;
  if (std::ranges::any_of(run.figures, &BenchFigure::has_numbers)) return 0;
  std::cerr << "iridium bench: nothing was measured\n";
  return 1;
}

}  // namespace

void add_sampling_options(Subcommand& command, int& samples, double& sample_milliseconds) {
  command
      .add("--samples", samples,
           fmt::format("How many times are taken of each figure, in five rounds: 7 to 1000. "
                       "The default is {}.",
                       samples))
      .within(7, 1000)
      .value_name("COUNT");
  command
      .add("--sample-time", sample_milliseconds,
           fmt::format("How long a sample takes, in milliseconds. The default is {}.",
                       sample_milliseconds))
      .within(0.1, 10'000.0)
      .value_name("MS");
}

Subcommand add_bench(CommandLine& line, BenchCommand& command) {
  Subcommand bench =
      line.add("bench", "Measures operations beside plain copies, and checks every result.");
  bench
      .add("operations", command.operations,
           fmt::format("What to measure: {}.", fmt::join(names_of(operations()), ", ")))
      .value_name("OPERATION...");
  bench
      .add("-n", command.ranks,
           fmt::format("The numbers of ranks, from 1 to {}: 4, or 2,4,8.", max_ranks))
      .last_counts()
      .value_name("N[,N...]");
  add_job_options(bench, command.job);
  bench
      .add("--bytes", command.bytes,
           "Sizes of operations with a payload: 64K, 4K,1M, or a range 4K:64M, in which "
           "every size is four times the one before (4K:64M:x2: twice). The default is "
           "4K:64M.")
      .last_counts()
      .value_name("SIZES");
  bench
      .add("--shape", command.shapes,
           fmt::format(
               "Shapes of products, M, N and K: 4096x3584x8192, or several with commas; may "
               "be given several times. The default is {} on GPUs and {} on CPUs.",
               fmt::join(default_shapes("cuda"), ","), fmt::join(default_shapes("host"), ",")))
      .one_value_each()
      .value_name("MxNxK");
  for (const char* name : {"algorithm", "dtype", "op", "layout", "memory", "blocks", "tile"})
    bench
        .add_function(
            fmt::format("--{}", name),
            [&command, name](const std::string& values) {
              command.settings.push_back(fmt::format("{}={}", name, values));
            },
            fmt::format("The same as --set {}=VALUE, for operations that have it{}.", name,
                        name == std::string_view("algorithm") ? "; all of them by default" : ""))
        .last_counts()
        .value_name("VALUE[,VALUE...]");
  // Not an option of the list itself, which would drop what the others have put there.
  bench
      .add_function(
          "--set",
          [&command](const std::vector<std::string>& texts) {
            command.settings.insert(command.settings.end(), texts.begin(), texts.end());
          },
          "Values of a parameter of the operations, all of which are measured; may be given "
          "several "
          "times. Without it parameters have their defaults, but all algorithms are measured.")
      .one_value_each()
      .value_name("NAME=VALUE[,VALUE...]");
  const SubcommandOption baseline =
      bench
          .add("--baseline", command.baselines,
               fmt::format("What to measure bandwidths beside; may be given several times: "
                           "{}. The default is all of them.",
                           fmt::join(names_of(copy_limits()), ", ")))
          .one_value_each()
          .value_name("NAME");
  bench
      .add_flag(
          "--no-baseline", [&command] { command.baselines.clear(); },
          "Measures the operations alone.")
      .excludes(baseline);
  bench
      .add("--peer", command.peers,
           "Another library's program that takes part (docs/benchmarks.md); may be given "
           "several times.")
      .one_value_each()
      .value_name("COMMAND");
  add_sampling_options(bench, command.samples, command.sample_milliseconds);
  bench
      .add("--format", command.format,
           "How to print it: table, for people, json or csv. The default is table.")
      .one_of({"table", "json", "csv"})
      .value_name("FORMAT");
  bench.add("--out", command.out, "Also writes the JSON to this file.").value_name("FILE");
  bench
      .add("--compare", command.compare,
           "Compares two files of figures instead, the older one first. The status is 1 "
           "when a figure became slower or has no number any more, or the run after is not "
           "complete, 2 when they cannot be compared.")
      .value_count(2)
      .value_name("BEFORE AFTER");
  bench
      .add("--threshold", command.threshold,
           "What a comparison tolerates besides noise, as a share. The default is 0.05.")
      .within(0.0, 10.0)
      .value_name("SHARE");
  // For the ranks that the command starts itself.
  bench.add("--rows", command.rows).hidden();
  bench.add("--turns", command.turns).one_value_each().hidden();
  bench.add("--first-heat", command.first_heat).hidden();
  bench.footer(
      "Every contender is checked with fresh random inputs before and after it is measured; a\n"
      "figure with a wrong result has no number, and makes the status 1. Contenders of one size\n"
      "take turns, as replays of a graph and as eager calls. Progress goes to standard error.\n"
      "\n"
      "Example: iridium bench device_barrier put get -n 2,4,8 --bytes 4K:16M --out figures.json");
  return bench;
}

int bench(const BenchCommand& command) {
  if (!command.compare.empty()) return compare_files(command);
  if (command.operations.empty())
    throw Error(Errc::invalid_argument, fmt::format("bench: no operation is given; there are {}",
                                                    fmt::join(names_of(operations()), ", ")));
  if (command.ranks.empty())
    throw Error(Errc::invalid_argument, "bench: the number of ranks is missing: -n 4, or -n 2,4,8");
  return measure(command);
}

}  // namespace iridium::cli
