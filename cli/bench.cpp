#include "cli/bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>

#include "cli/bench_axes.h"
#include "cli/bench_compare.h"
#include "cli/bench_job.h"
#include "cli/bench_machine.h"
#include "cli/bench_results.h"
#include "cli/command_line.h"
#include "cli/output_file.h"
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
    return comparison.is_worse() ? 1 : 0;
  } catch (const Error& error) {
    std::cerr << "iridium: " << error.what() << "\n";
    return cannot_compare;
  }
}

int measure(const BenchCommand& command) {
  const std::vector<int> ranks = parse_numbers("-n", command.ranks, 1, max_ranks);
  const std::vector<BenchHeat> heats = plan(command);
  std::optional<OutputFile> file;
  if (!command.out.empty()) file.emplace(command.out);

  BenchRun run = begin_run(command.text);
  const BenchTask task = {command, heats};
  const int status = run_bench_jobs({&task, 1}, ranks, run).status;

  std::exception_ptr problem;
  try {
    if (file) file->write(as_json(run));
  } catch (const Error&) {
    problem = std::current_exception();
  }
  print(text_of(run, command.format));
  if (problem) std::rethrow_exception(problem);
  return status == 0 && run.has_failed() ? 1 : status;
}

}  // namespace

void add_sampling_options(CLI::App& command, int& samples, double& sample_milliseconds) {
  command
      .add_option("--samples", samples,
                  fmt::format("How many times are taken of each figure, in five rounds: 7 to 1000. "
                              "The default is {}.",
                              samples))
      ->check(CLI::Range(7, 1000))
      ->option_text("COUNT");
  command
      .add_option("--sample-time", sample_milliseconds,
                  fmt::format("How long a sample takes, in milliseconds. The default is {}.",
                              sample_milliseconds))
      ->check(CLI::Range(0.1, 10'000.0))
      ->option_text("MS");
}

CLI::App* add_bench(CLI::App& app, BenchCommand& command) {
  CLI::App* bench = app.add_subcommand(
      "bench", "Measures operations beside plain copies, and checks every result.");
  bench
      ->add_option("operations", command.operations,
                   fmt::format("What to measure: {}.", fmt::join(names_of(operations()), ", ")))
      ->option_text("OPERATION...");
  bench
      ->add_option("-n", command.ranks,
                   fmt::format("The numbers of ranks, from 1 to {}: 4, or 2,4,8.", max_ranks))
      ->take_last()
      ->option_text("N[,N...]");
  add_job_options(*bench, command.job);
  bench
      ->add_option("--bytes", command.bytes,
                   "Sizes of operations with a payload: 64K, 4K,1M, or a range 4K:64M, in which "
                   "every size is four times the one before (4K:64M:x2: twice). The default is "
                   "4K:64M.")
      ->take_last()
      ->option_text("SIZES");
  for (const char* name : {"algorithm", "dtype", "op", "memory", "blocks", "tile"})
    bench
        ->add_option_function<std::string>(
            fmt::format("--{}", name),
            [&command, name](const std::string& values) {
              command.settings.push_back(fmt::format("{}={}", name, values));
            },
            fmt::format("The same as --set {}=VALUE, for operations that have it{}.", name,
                        name == std::string_view("algorithm") ? "; all of them by default" : ""))
        ->take_last()
        ->option_text("VALUE[,VALUE...]");
  // Not an option of the list itself, which would drop what the others have put there.
  bench
      ->add_option_function<std::vector<std::string>>(
          "--set",
          [&command](const std::vector<std::string>& texts) {
            command.settings.insert(command.settings.end(), texts.begin(), texts.end());
          },
          "Values of a parameter of the operations, all of which are measured; may be given "
          "several "
          "times. Without it parameters have their defaults, but all algorithms are measured.")
      ->allow_extra_args(false)
      ->option_text("NAME=VALUE[,VALUE...]");
  CLI::Option* baseline =
      bench
          ->add_option("--baseline", command.baselines,
                       fmt::format("What to measure bandwidths beside; may be given several times: "
                                   "{}. The default is all of them.",
                                   fmt::join(names_of(copy_limits()), ", ")))
          ->allow_extra_args(false)
          ->option_text("NAME");
  bench
      ->add_flag_callback(
          "--no-baseline", [&command] { command.baselines.clear(); },
          "Measures the operations alone.")
      ->excludes(baseline);
  bench
      ->add_option("--peer", command.peers,
                   "Another library's program that takes part (docs/benchmarks.md); may be given "
                   "several times.")
      ->allow_extra_args(false)
      ->option_text("COMMAND");
  add_sampling_options(*bench, command.samples, command.sample_milliseconds);
  bench
      ->add_option("--format", command.format,
                   "How to print it: table, for people, json or csv. The default is table.")
      ->check(CLI::IsMember({"table", "json", "csv"}))
      ->option_text("FORMAT");
  bench->add_option("--out", command.out, "Also writes the JSON to this file.")
      ->option_text("FILE");
  bench
      ->add_option("--compare", command.compare,
                   "Compares two files of figures instead, the older one first. The status is 1 "
                   "when a figure became slower or has no number any more, or the run after is not "
                   "complete, 2 when they cannot be compared.")
      ->expected(2)
      ->option_text("BEFORE AFTER");
  bench
      ->add_option("--threshold", command.threshold,
                   "What a comparison tolerates besides noise, as a share. The default is 0.05.")
      ->check(CLI::Range(0.0, 10.0))
      ->option_text("SHARE");
  // For the ranks that the command starts itself.
  bench->add_option("--rows", command.rows)->group("");
  bench->add_option("--turns", command.turns)->allow_extra_args(false)->group("");
  bench->add_option("--first-heat", command.first_heat)->group("");
  bench->footer(
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
