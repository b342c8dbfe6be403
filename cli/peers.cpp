#include "cli/peers.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "cli/command_line.h"
#include "cli/launcher.h"
#include "cli/temporary_file.h"
#include "iridium/context.h"
#include "iridium/errors.h"
#include "iridium/version.h"

namespace iridium::cli {
int show_peers(const PeersCommand& command) {
  const TemporaryFile rows("iridium-peers");
  RunOptions job = command.job;
  job.program = std::filesystem::read_symlink("/proc/self/exe");
  job.command = "info --peers";
  // Pairs that do not hear each other are measured one after another.
  if (std::getenv("IRIDIUM_TIMEOUT") == nullptr) job.timeout = 30;
  job.arguments = {"info", "--peers", "-n", std::to_string(job.ranks), "--rows", rows.path()};
  const int status = Launcher(job).run();
  std::ifstream file(rows.path());
  const PeersReport report = read_peers(file);
  // No rank has got as far as a context, and said why: a table of nothing helps nobody.
  const bool has_begun = !report.devices.empty();
  if (command.format == "json")
    print(peers_as_json(version(), report));
  else if (has_begun)
    print(peers_as_table(report));
  if (status != 0) return status;
  return has_begun && report.is_well() ? 0 : 1;
}

int peers_as_rank(const std::string& rows) {
  Context context;
  PeerMeterOptions options;
  // CPUs have no link to fill.
  if (context.backend() == BackendKind::host) options.bytes = 8u << 20;
  PeerMeter meter(context, options);
  std::ofstream file;
  const std::vector<int> devices = context.world().all_gather(context.device());
  const auto write = [&](const std::string& line) {
    if (context.rank() != 0) return;
    if (!file.is_open()) file.open(rows);
    file << line << std::flush;
    if (!file) throw Error(Errc::system, "cannot write to " + rows);
  };
  write(as_line(std::string(name(context.backend())), devices));
  for (int one = 0; one < context.size(); ++one) {
    for (int other = one + 1; other < context.size(); ++other)
      for (const PeerFigures& figures : meter.measure(one, other)) write(as_line(figures));
    if (context.rank() == 0)
      std::cerr << fmt::format("{} of {} ranks measured\n", one + 1, context.size());
  }
  return 0;
}

}  // namespace iridium::cli
