#include "cli/bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <system_error>
#include <thread>

#include "cli/bench_axes.h"
#include "cli/bench_compare.h"
#include "cli/bench_machine.h"
#include "cli/bench_peer.h"
#include "cli/bench_results.h"
#include "cli/launcher.h"
#include "cli/progress.h"
#include "cli/temporary_file.h"
#include "iridium/bootstrap.h"
#include "iridium/errors.h"
#include "iridium/version.h"

namespace iridium::cli {
namespace {

const Operation* find(const std::vector<Operation>& list, const std::string& name) {
  const auto found = std::ranges::find(list, name, &Operation::name);
  return found == list.end() ? nullptr : &*found;
}

std::vector<std::string> names_of(const std::vector<Operation>& list) {
  std::vector<std::string> names;
  for (const Operation& operation : list) names.push_back(operation.name);
  return names;
}

const Operation& require(const std::vector<Operation>& list, const std::string& kind,
                         const std::string& name) {
  if (const Operation* operation = find(list, name)) return *operation;
  std::vector<std::string> names = nearest_names(name, names_of(list));
  const bool is_like_some = !names.empty();
  if (!is_like_some) names = names_of(list);
  throw Error(Errc::invalid_argument,
              fmt::format("there is no {} '{}'; {} {}", kind, name,
                          is_like_some ? "did you mean" : "there are", fmt::join(names, ", ")));
}

bool has_parameter(const Operation& operation, const std::string& name) {
  return std::ranges::find(operation.parameters, name, &Parameter::name) !=
         operation.parameters.end();
}

/// "blocks=8,16" as a parameter.
Parameter parse_setting(const std::string& text) {
  const std::size_t sign = text.find('=');
  if (sign == std::string::npos || sign == 0 || sign + 1 == text.size())
    throw Error(Errc::invalid_argument,
                fmt::format("--set is '{}': expected NAME=VALUE or NAME=VALUE,VALUE", text));
  Parameter setting = {text.substr(0, sign), {}};
  std::istringstream values(text.substr(sign + 1));
  for (std::string value; std::getline(values, value, ',');) setting.values.push_back(value);
  return setting;
}

/// The operation with the values of its parameters that are to be measured: those given, else the
/// default, but all algorithms.
Operation chosen(const Operation& operation, const std::vector<Parameter>& settings) {
  Operation chosen = operation;
  for (Parameter& parameter : chosen.parameters) {
    const auto given = std::ranges::find(settings, parameter.name, &Parameter::name);
    if (given != settings.end())
      parameter.values = given->values;
    else if (parameter.name != "algorithm")
      parameter.values.resize(1);
  }
  return chosen;
}

void add_entries(BenchHeat& heat, const std::string& contender, const Operation& operation,
                 const std::vector<Parameter>& settings) {
  for (Arguments& arguments : combinations(chosen(operation, settings))) {
    if (heat.bytes > 0) arguments["bytes"] = std::to_string(heat.bytes);
    // What nobody asked for stays as the operation chooses, and out of the figures.
    std::erase_if(arguments, [&](const auto& argument) {
      return argument.first != "bytes" && argument.first != "algorithm" &&
             std::ranges::find(settings, argument.first, &Parameter::name) == settings.end();
    });
    heat.entries.push_back({contender, &operation, std::move(arguments)});
  }
}

void require_used(const Parameter& setting, const std::vector<const Operation*>& operations) {
  if (setting.name == "bytes")
    throw Error(Errc::invalid_argument, "--set bytes: sizes are given by --bytes");
  for (const Operation* operation : operations)
    if (has_parameter(*operation, setting.name)) return;
  throw Error(Errc::invalid_argument,
              fmt::format("--set {}: none of the operations has such a parameter", setting.name));
}

std::vector<std::string> arguments_for_rank(const BenchCommand& command, const std::string& rows,
                                            const std::vector<std::string>& turns) {
  std::vector<std::string> arguments = {"bench", "-n",      "1",          "--rows",
                                        rows,    "--bytes", command.bytes};
  arguments.insert(arguments.end(), {"--samples", std::to_string(command.samples), "--sample-time",
                                     std::to_string(command.sample_milliseconds)});
  for (const std::string& setting : command.settings)
    arguments.insert(arguments.end(), {"--set", setting});
  if (command.baselines.empty()) arguments.push_back("--no-baseline");
  for (const std::string& name : command.baselines)
    arguments.insert(arguments.end(), {"--baseline", name});
  for (const std::string& folder : turns) arguments.insert(arguments.end(), {"--turns", folder});
  for (const std::string& name : command.operations) arguments.push_back(name);
  return arguments;
}

/// What one heat will add to the figures.
std::size_t figures_of(const BenchHeat& heat) {
  return 2 * heat.entries.size();
}

/// The figures that rank 0 has written; the first line is the backend's name.
struct Rows {
  std::string backend;
  std::vector<BenchFigure> figures;
};
Rows read_rows(const std::string& path) {
  Rows rows;
  std::ifstream file(path);
  std::getline(file, rows.backend);
  for (std::string line; std::getline(file, line) && !file.eof();)
    rows.figures.push_back(figure_from_line(line));
  return rows;
}

/// Why the ranks did not come to the rest.
void add_missing(std::vector<BenchFigure>& figures, const std::vector<BenchHeat>& heats, int ranks,
                 std::size_t found, int status) {
  std::size_t skipped = found;
  for (const BenchHeat& heat : heats) {
    if (skipped >= figures_of(heat)) {
      skipped -= figures_of(heat);
      continue;
    }
    skipped = 0;
    for (const BenchHeat::Entry& entry : heat.entries)
      for (const char* mode : {"graph", "eager"}) {
        BenchFigure figure;
        figure.operation = heat.operation;
        figure.contender = entry.contender;
        figure.mode = mode;
        figure.ranks = ranks;
        figure.bytes = heat.bytes;
        figure.failed = fmt::format("the ranks ended with status {} before it", status);
        figures.push_back(std::move(figure));
      }
  }
}

/// One job: all heats on so many ranks. `done`: how many figures there are, without those of peers.
int run_job(const BenchCommand& command, const std::vector<BenchHeat>& heats, int ranks,
            ProgressBar& progress, std::size_t& done, BenchRun& run) {
  const TemporaryFile rows("iridium-bench");
  RunOptions job = command.job;
  job.command = "bench";
  job.ranks = ranks;
  job.program = std::filesystem::read_symlink("/proc/self/exe");
  std::vector<std::unique_ptr<BenchPeer>> peers;
  std::vector<std::string> turns;
  for (const std::string& peer : command.peers) {
    peers.push_back(std::make_unique<BenchPeer>(peer, command, heats, ranks));
    turns.push_back(peers.back()->folder());
  }
  job.arguments = arguments_for_rank(command, rows.path(), turns);
  const std::size_t before = done;
  int status = 0;
  {
    const ProgressWatch watch(progress,
                              [&] { return before + read_rows(rows.path()).figures.size(); });
    status = Launcher(job).run();
  }
  Rows found = read_rows(rows.path());
  if (!found.backend.empty()) describe_device(run.machine, found.backend);
  const std::size_t count = found.figures.size();
  std::ranges::move(found.figures, std::back_inserter(run.figures));
  if (status != 0) add_missing(run.figures, heats, ranks, count, status);
  done = before;
  for (const BenchHeat& heat : heats) done += figures_of(heat);
  progress.show(done);
  for (const auto& peer : peers) std::ranges::move(peer->end(), std::back_inserter(run.figures));
  return status;
}

/// Whether the file can be written, before anything is measured for it.
void require_writable(const std::string& path) {
  const bool was_there = std::filesystem::exists(path);
  std::ofstream file(path, std::ios::app);
  if (!file)
    throw Error(Errc::system, fmt::format("cannot write to {}: {}", path,
                                          std::generic_category().message(errno)));
  if (!was_there) std::filesystem::remove(path);
}

/// All of it or nothing.
void write_file(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  std::ofstream file(part, std::ios::trunc);
  file << text;
  file.close();
  if (!file || std::rename(part.c_str(), path.c_str()) != 0)
    throw Error(Errc::system, fmt::format("cannot write to {}: {}", path,
                                          std::generic_category().message(errno)));
}

std::string command_text(const BenchCommand& command) {
  std::string text =
      fmt::format("iridium bench {} -n {}", fmt::join(command.operations, " "), command.ranks);
  if (!command.job.backend.empty()) text += " --backend " + command.job.backend;
  text += " --bytes " + command.bytes;
  for (const std::string& setting : command.settings) text += " --set " + setting;
  for (const std::string& peer : command.peers) text += " --peer '" + peer + "'";
  return text;
}

int compare_files(const BenchCommand& command) {
  const Comparison comparison =
      compare(read_run(command.compare[0]), read_run(command.compare[1]), command.threshold);
  std::cout << as_table(comparison) << std::flush;
  return comparison.has_regressions() ? 1 : 0;
}

int measure(const BenchCommand& command) {
  const std::vector<int> ranks = parse_numbers("-n", command.ranks, 1, max_ranks);
  const std::vector<BenchHeat> heats = plan(command);
  if (!command.out.empty()) require_writable(command.out);

  BenchRun run;
  run.version = version();
  run.commit = commit();
  run.command = command_text(command);
  run.machine = this_machine();
  std::size_t total = 0;
  for (const BenchHeat& heat : heats) total += figures_of(heat) * ranks.size();
  ProgressBar progress("figures", total);
  int status = 0;
  std::size_t done = 0;
  for (const int count : ranks) {
    const int ended = run_job(command, heats, count, progress, done, run);
    if (ended != 0) status = ended;
    // Somebody has asked it to stop.
    if (ended > 128) break;
  }
  run.complete = done == total && status == 0;

  if (!command.out.empty()) write_file(command.out, as_json(run));
  std::cout << (command.format == "json"  ? as_json(run)
                : command.format == "csv" ? as_csv(run)
                                          : as_table(run))
            << std::flush;
  if (!std::cout) throw Error(Errc::system, "cannot write to standard output");
  const bool has_failed =
      std::ranges::any_of(run.figures, [](const BenchFigure& one) { return !one.failed.empty(); });
  return status != 0 ? status : has_failed ? 1 : 0;
}

}  // namespace

std::vector<BenchHeat> plan(const BenchCommand& command) {
  std::vector<const Operation*> selected;
  for (const std::string& name : command.operations)
    selected.push_back(&require(operations(), "operation", name));
  std::vector<const Operation*> baselines;
  for (const std::string& name : command.baselines)
    baselines.push_back(&require(copy_limits(), "baseline", name));
  std::vector<Parameter> settings;
  std::vector<const Operation*> known = selected;
  known.insert(known.end(), baselines.begin(), baselines.end());
  for (const std::string& text : command.settings) {
    settings.push_back(parse_setting(text));
    require_used(settings.back(), known);
  }
  const std::vector<std::size_t> sizes = parse_sizes("--bytes", command.bytes);

  std::vector<BenchHeat> heats;
  for (const Operation* operation : selected) {
    const bool has_payload = has_parameter(*operation, "bytes");
    for (const std::size_t bytes : has_payload ? sizes : std::vector<std::size_t>{0}) {
      BenchHeat heat = {operation->name, bytes, {}};
      add_entries(heat, "iridium", *operation, settings);
      if (has_payload)
        for (const Operation* baseline : baselines)
          add_entries(heat, baseline->name, *baseline, settings);
      heats.push_back(std::move(heat));
    }
  }
  return heats;
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
      ->option_text("N[,N...]");
  add_job_options(*bench, command.job);
  bench
      ->add_option("--bytes", command.bytes,
                   "Sizes of operations with a payload: 64K, 4K,1M, or a range 4K:64M, in which "
                   "every size is four times the one before (4K:64M:x2: twice). The default is "
                   "4K:64M.")
      ->take_last()
      ->option_text("SIZES");
  for (const char* name : {"algorithm", "dtype", "blocks"})
    bench
        ->add_option_function<std::string>(
            fmt::format("--{}", name),
            [&command, name](const std::string& values) {
              // All algorithms are measured anyway.
              if (values != "all") command.settings.push_back(fmt::format("{}={}", name, values));
            },
            fmt::format("The same as --set {}=VALUE, for operations that have it{}.", name,
                        name == std::string_view("algorithm") ? "; all of them by default" : ""))
        ->option_text("VALUE[,VALUE...]");
  bench
      ->add_option("--set", command.settings,
                   "Values of a parameter of the operations, all of which are measured; may be "
                   "given several times. Without it parameters have their defaults, but all "
                   "algorithms are measured.")
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
  bench
      ->add_option("--samples", command.samples,
                   "How many times are taken of each figure, in five rounds. The default is 15.")
      ->check(CLI::Range(7, 1000))
      ->option_text("COUNT");
  bench
      ->add_option("--sample-time", command.sample_milliseconds,
                   "How long a sample takes, in milliseconds. The default is 20.")
      ->check(CLI::Range(0.1, 10'000.0))
      ->option_text("MS");
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
                   "when something became slower.")
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
  bench->footer(
      "Every contender is checked with fresh random inputs before and after it is measured; a\n"
      "figure with a wrong result is not printed, and makes the status 1. Contenders of one size\n"
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
