#include "cli/command_line.h"

#include <iostream>
#include <utility>

#include "cli/bench.h"
#include "cli/info.h"
#include "cli/options.h"
#include "cli/probe.h"
#include "cli/rank_environment.h"
#include "cli/run.h"
#include "cli/tune.h"
#include "cli/variable_check.h"
#include "iridium/errors.h"
#include "iridium/version.h"

namespace iridium::cli {
namespace {

/// As people write them, but without where the results go.
std::string command_text(const std::vector<std::string>& arguments) {
  std::string text;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--out") {
      ++i;
      continue;
    }
    if (argument.starts_with("--out=")) continue;
    const bool is_plain = argument.find_first_of(" '\"\\") == std::string::npos;
    text += (text.empty() ? "" : " ") + (is_plain ? argument : "'" + argument + "'");
  }
  return text;
}

}  // namespace

void print(const std::string& text) {
  std::cout << text << std::flush;
  if (!std::cout) throw Error(Errc::system, "cannot write to standard output");
}

int run_command_line(const std::vector<std::string>& arguments) {
  CommandLine line;
  RunOptions run_options;
  InfoOptions info_options;
  ProbeCommand probe_command;
  BenchCommand bench_command;
  TuneCommand tune_command;
  const Subcommand run_command = add_run(line, run_options);
  const Subcommand info_command = add_info(line, info_options);
  const Subcommand probe_subcommand = add_probe(line, probe_command);
  const Subcommand bench_subcommand = add_bench(line, bench_command);
  const Subcommand tune_subcommand = add_tune(line, tune_command);

  std::vector<std::string> parsed = arguments;
  if (!arguments.empty() && arguments[0] == "run") {
    RunArguments split = split_run_arguments(run_command, {arguments.begin() + 1, arguments.end()});
    parsed = std::move(split.for_parser);
    parsed.insert(parsed.begin(), "run");
    run_options.arguments = std::move(split.for_program);
  }
  if (const auto status = line.parse(std::move(parsed))) return *status;
  const bool is_rank =
      !probe_command.rows.empty() || !bench_command.rows.empty() || !info_options.rows.empty();
  if (!is_rank)
    for (const std::string& warning : misspelt_settings(current_environment()))
      std::cerr << "iridium: " << warning << "\n";
  if (info_command.is_given()) return info(info_options);
  if (probe_subcommand.is_given())
    return probe_command.rows.empty() ? probe(probe_command) : probe_as_rank(probe_command);
  if (bench_subcommand.is_given()) {
    bench_command.text = command_text(arguments);
    return bench_command.rows.empty() ? bench(bench_command) : bench_as_rank(bench_command);
  }
  if (tune_subcommand.is_given()) {
    tune_command.text = command_text(arguments);
    return tune(std::move(tune_command));
  }
  return run(run_options);
}

}  // namespace iridium::cli
