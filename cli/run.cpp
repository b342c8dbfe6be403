#include "cli/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "cli/launcher.h"
#include "iridium/bootstrap.h"

namespace iridium::cli {
namespace {

constexpr double most_seconds = 1e6;

template <class Number>
bool is_within(const std::string& text, Number least, Number most) {
  Number value = {};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && value >= least && value <= most;
}

std::string wrong_number_of_ranks(const std::string& text) {
  if (is_within(text, 1, max_ranks)) return "";
  return fmt::format("'{}' is not a number of ranks from 1 to {}", text, max_ranks);
}

std::string wrong_seconds(const std::string& text, double least) {
  if (is_within(text, least, most_seconds)) return "";
  return fmt::format("'{}' is not a number of seconds from {} to {}", text, least, most_seconds);
}

bool takes_next_argument(const Subcommand& run, const std::string& argument) {
  const bool is_long = argument.starts_with("--");
  if (is_long ? argument.find('=') != std::string::npos : argument.size() > 2) return false;
  return run.takes_value(argument);
}

}  // namespace

void add_rank_option(Subcommand& command, RunOptions& options) {
  command
      .add("-n", options.ranks,
           fmt::format("The number of ranks to start, from 1 to {}.", max_ranks))
      .required()
      .check(wrong_number_of_ranks)
      .value_name("N REQUIRED");
}

void add_job_options(Subcommand& command, RunOptions& options) {
  command
      .add("--backend", options.backend,
           "The backend ranks use: auto, cuda or host. With auto each rank takes the best "
           "one present. Without this option IRIDIUM_BACKEND decides.")
      .one_of({"auto", "cuda", "host"})
      .value_name("NAME");
  command
      .add("--timeout", options.timeout,
           "The bound of every wait of a rank, in seconds. Without this option "
           "IRIDIUM_TIMEOUT decides.")
      .check([](const std::string& text) { return wrong_seconds(text, 0.001); })
      .value_name("SECONDS");
  command
      .add("--grace", options.grace,
           "The time ranks get to end by themselves before they are killed, in seconds. "
           "The default is 5.")
      .check([](const std::string& text) { return wrong_seconds(text, 0.0); })
      .value_name("SECONDS");
  command
      .add("--mps", options.mps,
           "Whether to run NVIDIA's MPS daemon for the job, without which ranks that share "
           "a GPU take turns: auto, on or off. With auto, the default, one is started when "
           "there are more ranks than GPUs. One that runs already is used.")
      .one_of({"auto", "on", "off"})
      .value_name("WHEN");
}

Subcommand add_run(CommandLine& line, RunOptions& options) {
  Subcommand run = line.add("run", "Runs a program as several ranks on this host.");
  add_rank_option(run, options);
  add_job_options(run, options);
  run.add("program", options.program,
          "The program to run, looked up in PATH. All that follows it is passed on to it.")
      .required()
      .value_name("[arguments...] REQUIRED");
  run.footer(
      "Every line that a rank writes is printed with its rank in front. When a rank fails, the\n"
      "others are ended, and its status is returned: 128 plus the signal if a signal killed it.\n"
      "The status is 127 when the program is not found, and 126 when it cannot be started.\n"
      "Interrupt, terminate, hang-up, quit and user signals are passed on to all ranks.\n"
      "\n"
      "Example: iridium run -n 4 --backend host -- ./program --its-own-option");
  return run;
}

RunArguments split_run_arguments(const Subcommand& run, const std::vector<std::string>& arguments) {
  std::size_t program = 0;
  while (program < arguments.size()) {
    const std::string& argument = arguments[program];
    if (argument == "--") {
      ++program;
      break;
    }
    if (argument.size() < 2 || argument[0] != '-') break;
    program += takes_next_argument(run, argument) ? 2 : 1;
  }
  const std::size_t kept = std::min(program + 1, arguments.size());
  const auto cut = arguments.begin() + static_cast<std::ptrdiff_t>(kept);
  return {.for_parser = {arguments.begin(), cut}, .for_program = {cut, arguments.end()}};
}

int run(const RunOptions& options) {
  return Launcher(options).run();
}

}  // namespace iridium::cli
