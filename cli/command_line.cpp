#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <utility>

#include "cli/bench.h"
#include "cli/info.h"
#include "cli/probe.h"
#include "cli/rank_environment.h"
#include "cli/run.h"
#include "cli/tune.h"
#include "cli/variable_check.h"
#include "iridium/errors.h"
#include "iridium/version.h"

namespace iridium::cli {
namespace {

std::string usage_message(const CLI::App* app, const CLI::Error& error) {
  const std::vector<std::string> unknown = app->remaining();
  const bool has_command = !app->get_subcommands().empty();
  const std::string reason = !has_command && !unknown.empty()
                                 ? "there is no subcommand '" + unknown[0] + "'"
                                 : error.what();
  return "iridium: " + reason + "\nRun with --help for more information.\n";
}

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
  CLI::App app("Iridium: GPU kernels that read and write each other's memory.", "iridium");
  app.set_version_flag("--version", std::string("iridium ") + version(),
                       "Prints the version and exits.");
  app.set_help_flag("-h,--help", "Prints this help and exits.");
  app.require_subcommand(1);
  app.failure_message(usage_message);
  RunOptions run_options;
  InfoOptions info_options;
  ProbeCommand probe_command;
  BenchCommand bench_command;
  TuneCommand tune_command;
  const CLI::App* run_command = add_run(app, run_options);
  const CLI::App* info_command = add_info(app, info_options);
  const CLI::App* probe_subcommand = add_probe(app, probe_command);
  const CLI::App* bench_subcommand = add_bench(app, bench_command);
  const CLI::App* tune_subcommand = add_tune(app, tune_command);

  std::vector<std::string> parsed = arguments;
  if (!arguments.empty() && arguments[0] == "run") {
    RunArguments split =
        split_run_arguments(*run_command, {arguments.begin() + 1, arguments.end()});
    parsed = std::move(split.for_parser);
    parsed.insert(parsed.begin(), "run");
    run_options.arguments = std::move(split.for_program);
  }
  try {
    std::ranges::reverse(parsed);
    app.parse(std::move(parsed));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : usage_error_status;
  }
  const bool is_rank = !probe_command.rows.empty() || !bench_command.rows.empty();
  if (!is_rank)
    for (const std::string& line : misspelt_settings(current_environment()))
      std::cerr << "iridium: " << line << "\n";
  if (*info_command) {
    print(info(info_options));
    return 0;
  }
  if (*probe_subcommand)
    return probe_command.rows.empty() ? probe(probe_command) : probe_as_rank(probe_command);
  if (*bench_subcommand) {
    bench_command.text = command_text(arguments);
    return bench_command.rows.empty() ? bench(bench_command) : bench_as_rank(bench_command);
  }
  if (*tune_subcommand) {
    tune_command.text = command_text(arguments);
    return tune(std::move(tune_command));
  }
  return run(run_options);
}

}  // namespace iridium::cli
