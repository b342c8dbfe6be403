#include "cli/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <utility>

#include "cli/command_line.h"
#include "cli/launcher.h"
#include "cli/temporary_file.h"
#include "iridium/context.h"
#include "iridium/device_barrier.h"
#include "iridium/errors.h"
#include "iridium/remote_memory.h"
#include "iridium/version.h"

namespace iridium::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t words = std::size_t{4} << 20;  ///< of 8 bytes: 32 MiB
constexpr int rounds = 5;
constexpr int copies = 4;     ///< that are timed together
constexpr int barriers = 50;  ///< of a graph

/// Where the acting rank stands in the team of a pair, and the other.
constexpr int actor = 0;
constexpr int owner = 1;

/// What a rank's own memory holds before a check: no two ranks, no two words alike.
std::vector<std::uint64_t> pattern_of(int rank) {
  std::vector<std::uint64_t> pattern(words);
  for (std::size_t i = 0; i < words; ++i)
    pattern[i] = (static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15u + i * 0x100000001u;
  return pattern;
}

/// How one rank's part of a pair went; what ranks tell each other.
struct Outcome {
  Link link = Link::none;
  double barrier_us = 0;
  double put_gbps = 0;
  double get_gbps = 0;
  char wrong[400] = {};

  /// What is wrong first stays.
  void add_wrong(std::string_view text) {
    if (wrong[0] == '\0') std::memcpy(wrong, text.data(), std::min(text.size(), sizeof wrong - 1));
  }
};

/// Measures pair after pair. All functions are collective over the members of the pair.
class PairMeter {
 public:
  explicit PairMeter(Context& context)
      : context_(context),
        stream_(context.make_stream()),
        own_(context.allocate<std::uint64_t>(words)),
        received_(context.allocate<std::uint64_t>(words)) {
    const std::vector<std::uint64_t> mine = pattern_of(context.rank());
    stream_.copy(own_.data(), mine.data(), own_.bytes());
    stream_.synchronize();
  }

  Outcome measure(Team& team) {
    Outcome outcome;
    outcome.link = context_.link(team.ranks()[team.rank() == actor ? owner : actor]);
    const auto put_bytes = [&] {
      put(stream_, team, received_.data(), own_.data(), own_.bytes(), owner);
    };
    const auto get_bytes = [&] {
      get(stream_, team, received_.data(), own_.data(), own_.bytes(), owner);
    };
    act(team, put_bytes, 1);
    // Noted, not thrown: the other of the pair would wait for this one until the timeout.
    if (team.rank() == owner) outcome.add_wrong(difference_from(team.ranks()[actor], "put"));
    act(team, get_bytes, 1);
    if (team.rank() == actor) outcome.add_wrong(difference_from(team.ranks()[owner], "got"));
    outcome.put_gbps = best_gbps(team, put_bytes);
    outcome.get_gbps = best_gbps(team, get_bytes);
    outcome.barrier_us = best_barrier(team);
    return outcome;
  }

 private:
  /// Clears both sides, and runs `body` on the actor alone; microseconds.
  double act(Team& team, const std::function<void()>& body, int repeats) {
    stream_.fill(received_.data(), 0, received_.bytes());
    stream_.synchronize();
    team.barrier();
    const auto start = Clock::now();
    if (team.rank() == actor) {
      for (int i = 0; i < repeats; ++i) body();
      stream_.synchronize();
    }
    const std::chrono::duration<double, std::micro> time = Clock::now() - start;
    team.barrier();
    team.check();
    return time.count();
  }

  /// Where the bytes that were received are not `rank`'s; empty when all are.
  std::string difference_from(int rank, const char* how) {
    std::vector<std::uint64_t> received(words);
    stream_.copy(received.data(), received_.data(), received_.bytes());
    stream_.synchronize();
    const std::vector<std::uint64_t> expected = pattern_of(rank);
    const auto [wrong, right] = std::ranges::mismatch(received, expected);
    if (wrong == received.end()) return {};
    return fmt::format("word {} of {} that was {} is {:#x}, not {:#x}", wrong - received.begin(),
                       words, how, *wrong, *right);
  }

  double best_gbps(Team& team, const std::function<void()>& body) {
    double best = 0;
    for (int round = 0; round < rounds; ++round) {
      const double time = act(team, body, copies);
      best = std::max(best, copies * static_cast<double>(own_.bytes()) / time / 1000);
    }
    return best;
  }

  double best_barrier(Team& team) {
    stream_.begin_capture();
    for (int i = 0; i < barriers; ++i) device_barrier(stream_, team);
    const Graph graph = stream_.end_capture();
    double best = 0;
    for (int round = 0; round < rounds; ++round) {
      team.barrier();
      const auto start = Clock::now();
      stream_.launch(graph);
      stream_.synchronize();
      const std::chrono::duration<double, std::micro> time = Clock::now() - start;
      team.check();
      if (round == 0 || time.count() / barriers < best) best = time.count() / barriers;
    }
    return best;
  }

  Context& context_;
  Stream stream_;
  SymmetricArray<std::uint64_t> own_;
  SymmetricArray<std::uint64_t> received_;
};

/// What the pair found, as every rank hears of it. A pair that fails keeps no other from being
/// measured.
PeerFigures figures_of(Context& context, PairMeter& meter, int from, int to) {
  Outcome mine;
  try {
    Team team = context.make_team({from, to}, {.name = fmt::format("ranks {} and {}", from, to)});
    if (team.is_member()) mine = meter.measure(team);
  } catch (const Error& error) {
    mine.add_wrong(error.what());
  }
  // Who waited in vain comes a timeout later.
  const std::vector<Outcome> all = context.world().all_gather(mine, 2);
  const Outcome& acted = all[static_cast<std::size_t>(from)];
  PeerFigures figures = {from,           to, acted.link, acted.barrier_us, acted.put_gbps,
                         acted.get_gbps, {}};
  for (const Outcome& outcome : all)
    if (figures.wrong.empty()) figures.wrong = outcome.wrong;
  return figures;
}

}  // namespace

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
  PairMeter meter(context);
  std::ofstream file;
  const std::vector<int> devices = context.world().all_gather(context.device());
  const auto write = [&](const std::string& line) {
    if (context.rank() != 0) return;
    if (!file.is_open()) file.open(rows);
    file << line << std::flush;
    if (!file) throw Error(Errc::system, "cannot write to " + rows);
  };
  write(as_line(std::string(name(context.backend())), devices));
  for (int from = 0; from < context.size(); ++from) {
    for (int to = 0; to < context.size(); ++to)
      if (from != to) write(as_line(figures_of(context, meter, from, to)));
    if (context.rank() == 0)
      std::cerr << fmt::format("{} of {} ranks measured\n", from + 1, context.size());
  }
  return 0;
}

}  // namespace iridium::cli
