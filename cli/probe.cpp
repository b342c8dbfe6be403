#include "cli/probe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

#include "cli/launcher.h"
#include "cli/probe_report.h"
#include "iridium/context.h"
#include "iridium/errors.h"
#include "iridium/probe.h"
#include "iridium/version.h"

namespace iridium::cli {
namespace {

/// A file of this process that is gone when the process ends.
class TemporaryFile {
 public:
  TemporaryFile() {
    path_ = (std::filesystem::temp_directory_path() / "iridium-probe-XXXXXX").string();
    const int descriptor = ::mkstemp(path_.data());
    if (descriptor < 0)
      throw Error(Errc::system, fmt::format("cannot make a file like {}: {}", path_,
                                            std::generic_category().message(errno)));
    ::close(descriptor);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(path_.c_str()); }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

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

CLI::Validator known_operation() {
  const auto check = [](const std::string& text) {
    const std::vector<std::string> names = operation_names();
    if (std::ranges::find(names, text) != names.end()) return std::string();
    return fmt::format("there is no operation '{}'; there are {}", text, fmt::join(names, ", "));
  };
  return CLI::Validator(check, "");
}

struct Case {
  const Operation* operation;
  Arguments arguments;
};

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
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  row.milliseconds = time.count();
  return row;
}

}  // namespace

CLI::App* add_probe(CLI::App& app, ProbeCommand& command) {
  CLI::App* probe = app.add_subcommand(
      "probe", "Captures and replays every operation, and checks what comes out.");
  add_job_options(*probe, command.job);
  probe
      ->add_option("--op", command.operations,
                   "Only this operation; may be given several times. The default is all of them: " +
                       fmt::format("{}", fmt::join(operation_names(), ", ")) + ".")
      ->check(known_operation())
      ->option_text("NAME");
  probe
      ->add_option("--format", command.format,
                   "How to print it: table, for people, or json, for programs. The default is "
                   "table.")
      ->check(CLI::IsMember({"table", "json"}))
      ->option_text("FORMAT");
  // For the ranks that the command starts itself.
  probe->add_option("--rows", command.rows)->group("");
  probe->footer(
      "Every operation runs once, is captured, and is replayed three times with fresh random\n"
      "inputs, then between eager calls; each result is compared with a reference. Host calls\n"
      "(allocate, host_barrier, make_team) must be refused by the capture. The status is 0 when\n"
      "every verdict is the expected one. Progress goes to standard error.\n"
      "\n"
      "Example: iridium probe -n 4 --op put --op get");
  return probe;
}

int probe(const ProbeCommand& command) {
  const TemporaryFile rows;
  RunOptions job = command.job;
  job.program = std::filesystem::read_symlink("/proc/self/exe");
  job.arguments = {"probe", "-n", std::to_string(job.ranks), "--rows", rows.path()};
  for (const std::string& name : command.operations) {
    job.arguments.push_back("--op");
    job.arguments.push_back(name);
  }
  const int status = Launcher(job).run();

  std::ifstream file(rows.path());
  const ProbeReport report = read_report(file);
  // Without a first line no rank has got as far as a context, and has said why.
  if (report.run.cases > 0)
    std::cout << (command.format == "json" ? as_json(version(), report) : as_table(report))
              << std::flush;
  if (!std::cout) throw Error(Errc::system, "cannot write to standard output");
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
    const ProbeRow row = probe_case(context, stream, cases[i]);
    if (context.rank() != 0) continue;
    write(rows, row);
    if (!rows) throw Error(Errc::system, "cannot write to " + command.rows);
    std::cerr << fmt::format("{} of {}: {} {}{}{}\n", i + 1, cases.size(), row.operation,
                             text_of(row.arguments), row.arguments.empty() ? "" : " ",
                             name(row.result.verdict));
  }
  context.barrier();
  return 0;
}

}  // namespace iridium::cli
