#include "cli/probe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "cli/command_line.h"
#include "cli/launcher.h"
#include "cli/probe_report.h"
#include "cli/temporary_file.h"
#include "iridium/context.h"
#include "iridium/errors.h"
#include "iridium/probe.h"
#include "iridium/version.h"

namespace iridium::cli {
namespace {

std::vector<const Operation*> all_operations() {
  std::vector<const Operation*> all;
  for (const auto* list : {&operations(), &host_calls()})
    for (const Operation& operation : *list) all.push_back(&operation);
  return all;
}

std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  for (const Operation* operation : all_operations()) names.push_back(operation->name);
  return names;
}

/// Why it is none; empty: it is one.
std::string unknown_operation(const std::string& text) {
  const std::vector<std::string> names = operation_names();
  if (std::ranges::find(names, text) != names.end()) return "";
  return fmt::format("there is no operation '{}'; there are {}", text, fmt::join(names, ", "));
}

struct Case {
  const Operation* operation;
  Arguments arguments;
};

/// "put count=3".
std::string describe(const Case& one) {
  const std::string arguments = text_of(one.arguments);
  return arguments.empty() ? one.operation->name : one.operation->name + " " + arguments;
}

std::vector<Case> selected_cases(const std::vector<std::string>& names) {
  std::vector<Case> cases;
  for (const Operation* operation : all_operations()) {
    if (!names.empty() && std::ranges::find(names, operation->name) == names.end()) continue;
    for (Arguments& arguments : combinations(*operation))
      cases.push_back({operation, std::move(arguments)});
  }
  return cases;
}

ProbeRow probe_case(Context& context, StreamRef& stream, const Case& one) {
  ProbeRow row;
  row.operation = one.operation->name;
  row.arguments = one.arguments;
  row.expected = expected_verdict(*one.operation);
  const auto start = std::chrono::steady_clock::now();
  row.result = iridium::probe(context, stream, *one.operation, one.arguments);
  row.as_expected = is_expected(*one.operation, row.result);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  row.milliseconds = time.count();
  return row;
}

}  // namespace

Subcommand add_probe(CommandLine& line, ProbeCommand& command) {
  Subcommand probe =
      line.add("probe", "Captures and replays every operation, and checks what comes out.");
  add_rank_option(probe, command.job);
  add_job_options(probe, command.job);
  probe
      .add("--op", command.operations,
           "Only this operation; may be given several times. The default is all of them: " +
               fmt::format("{}", fmt::join(operation_names(), ", ")) + ".")
      .check(unknown_operation)
      .one_value_each()
      .value_name("NAME");
  probe
      .add("--format", command.format,
           "How to print it: table, for people, or json, for programs. The default is "
           "table.")
      .one_of({"table", "json"})
      .value_name("FORMAT");
  // For the ranks that the command starts itself.
  probe.add("--rows", command.rows).hidden();
  probe.footer(
      "Every operation, launched twice in a row, runs once, is captured, and is replayed three\n"
      "times with fresh random inputs, then between eager calls; each result is compared with a\n"
      "reference. Host calls (allocate, host_barrier, make_team) must be refused by the capture,\n"
      "which goes on. The status is 0 when every verdict is the expected one. Progress goes to\n"
      "standard error.\n"
      "\n"
      "Example: iridium probe -n 4 --op put --op get");
  return probe;
}

int probe(const ProbeCommand& command) {
  const TemporaryFile rows("iridium-probe");
  RunOptions job = command.job;
  job.program = std::filesystem::read_symlink("/proc/self/exe");
  job.command = "probe";
  job.arguments = {"probe", "-n", std::to_string(job.ranks), "--rows", rows.path()};
  for (const std::string& name : command.operations)
    job.arguments.insert(job.arguments.end(), {"--op", name});
  const int status = Launcher(job).run();

  std::ifstream file(rows.path());
  ProbeReport report = read_report(file);
  // No rank has got as far as a context, and said why: a table of nothing helps nobody.
  const bool has_begun = report.run.cases > 0;
  if (!has_begun) report.run.ranks = job.ranks;
  if (command.format == "json")
    print(as_json(version(), report));
  else if (has_begun)
    print(as_table(report));
  if (status != 0) return status;
  return report.is_complete() && report.unexpected() == 0 ? 0 : 1;
}

int probe_as_rank(const ProbeCommand& command) {
  Context context;
  Stream stream = context.make_stream();
  const std::vector<Case> cases = selected_cases(command.operations);
  std::ofstream rows;
  if (context.rank() == 0) {
    rows.open(command.rows);
    write(rows, {std::string(name(context.backend())), context.size(), cases.size()});
    if (!rows) throw Error(Errc::system, "cannot write to " + command.rows);
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string what = describe(cases[i]);
    try {
      const ProbeRow row = probe_case(context, stream, cases[i]);
      if (context.rank() != 0) continue;
      write(rows, row);
      if (!rows) throw Error(Errc::system, "cannot write to " + command.rows);
      std::cerr << fmt::format("{} of {}: {}: {}\n", i + 1, cases.size(), what,
                               name(row.result.verdict));
    } catch (const Error& error) {
      std::cerr << fmt::format("{} of {}: {} failed\n", i + 1, cases.size(), what);
      throw;
    }
  }
  context.barrier();
  return 0;
}

}  // namespace iridium::cli
