#include "cli/bench_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "cli/bench_machine.h"
#include "cli/bench_peer.h"
#include "cli/launcher.h"
#include "cli/progress.h"
#include "cli/signal_source.h"
#include "cli/temporary_file.h"

namespace iridium::cli {
namespace {

std::vector<std::string> arguments_for_rank(const BenchCommand& command, const std::string& rows,
                                            std::size_t first_heat,
                                            const std::vector<std::string>& turns) {
  std::vector<std::string> arguments = {"bench",
                                        "-n",
                                        "1",
                                        "--rows",
                                        rows,
                                        "--first-heat",
                                        std::to_string(first_heat),
                                        "--bytes",
                                        command.bytes,
                                        "--samples",
                                        std::to_string(command.samples),
                                        "--sample-time",
                                        fmt::format("{}", command.sample_milliseconds)};
  for (const std::string& shape : command.shapes)
    arguments.insert(arguments.end(), {"--shape", shape});
  for (const std::string& setting : command.settings)
    arguments.insert(arguments.end(), {"--set", setting});
  if (command.baselines.empty()) arguments.emplace_back("--no-baseline");
  for (const std::string& name : command.baselines)
    arguments.insert(arguments.end(), {"--baseline", name});
  for (const std::string& folder : turns) arguments.insert(arguments.end(), {"--turns", folder});
  arguments.insert(arguments.end(), command.operations.begin(), command.operations.end());
  return arguments;
}

/// The figures that rank 0 has written; the first line is the backend, the worst link, and whether
/// grids leave room for kernels that compute.
struct Rows {
  std::string backend;
  Link link = Link::shared;
  bool beside_compute = false;
  std::vector<BenchFigure> figures;
};
Rows read_rows(const std::string& path) {
  Rows rows;
  std::ifstream file(path);
  std::string link;
  if (file >> rows.backend >> link >> rows.beside_compute) rows.link = parse_link(link);
  std::string first;
  std::getline(file, first);
  for (std::string line; std::getline(file, line) && !file.eof();)
    rows.figures.push_back(figure_from_line(line, "a rank's line"));
  return rows;
}

/// How many figures are there already; cheap, since others are being measured.
std::size_t count_rows(const std::string& path) {
  std::ifstream file(path);
  const auto lines = std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  return lines > 0 ? static_cast<std::size_t>(lines) - 1 : 0;
}

void add_failed(std::vector<BenchFigure>& figures, const BenchHeat& heat, int ranks,
                const std::string& reason) {
  for (const BenchHeat::Entry& entry : heat.entries)
    for (const char* mode : bench_modes) {
      figures.push_back(blank_figure(heat, entry, ranks, mode));
      figures.back().failed = reason;
    }
}

/// The bandwidth of peers beside the plain copies of the same heat.
void set_copy_shares(std::vector<BenchFigure>& peers, const std::vector<BenchFigure>& ours) {
  for (BenchFigure& figure : peers) {
    double copy_gbps = 0;
    for (const BenchFigure& one : ours)
      if (one.contender != "iridium" && one.operation == figure.operation &&
          one.bytes == figure.bytes && one.dtype == figure.dtype && one.op == figure.op &&
          one.ranks == figure.ranks)
        copy_gbps = std::max(copy_gbps, one.algorithm_gbps);
    if (copy_gbps > 0) figure.copy_share = figure.algorithm_gbps / copy_gbps;
  }
}

/// One job of several heats on a fixed number of ranks.
class BenchJob {
 public:
  BenchJob(const BenchCommand& command, const std::vector<BenchHeat>& heats, int ranks,
           const SignalSource& signals)
      : command_(command), heats_(heats), ranks_(ranks) {
    for (const std::string& peer : command.peers) {
      peers_.push_back(std::make_unique<BenchPeer>(peer, command, heats, ranks, signals));
      turns_.push_back(peers_.back()->folder());
    }
  }

  /// `done`: how many figures there were before.
  BenchJobEnd run(ProgressBar& progress, std::size_t done, BenchMachine& machine, GpuUse& use) {
    BenchJobEnd end;
    for (std::size_t heat = 0; heat < heats_.size() && !end.was_interrupted;) {
      const TemporaryFile rows("iridium-bench");
      Launcher launcher(job_from(heat, rows.path()));
      int status = 0;
      {
        const std::size_t before = done + figures_.size();
        const ProgressWatch watch(progress,
                                  [&, before] { return before + count_rows(rows.path()); });
        status = launcher.run();
      }
      end.was_interrupted = launcher.was_interrupted();
      if (status != 0) end.status = status;
      const Rows found = read_rows(rows.path());
      describe_device(machine, found.backend, ranks_, found.link, use);
      if (!found.backend.empty()) {
        link_ = found.link;
        beside_compute_ = found.beside_compute;
      }
      heat = take(found.figures, heat);
      if (heat == heats_.size() || end.was_interrupted) continue;
      // Before the first one no rank has got as far as a context: others would not either.
      const bool is_hopeless = found.backend.empty();
      end.never_began = is_hopeless && figures_.empty();
      const std::size_t last = is_hopeless ? heats_.size() : heat + 1;
      for (; heat < last; ++heat) {
        add_failed(figures_, heats_[heat], ranks_,
                   fmt::format("the ranks ended with status {} in it", status));
        for (const std::string& folder : turns_)
          for (int round = 0; round < bench_rounds; ++round) give_turn(folder, heat, round);
      }
    }
    return end;
  }

  /// Ends the peers, too.
  void add_to(BenchRun& run) {
    set_conditions(figures_);
    run.figures.insert(run.figures.end(), figures_.begin(), figures_.end());
    for (const auto& peer : peers_) {
      BenchPeer::Findings theirs = peer->end();
      set_conditions(theirs.figures);
      set_copy_shares(theirs.figures, figures_);
      std::ranges::move(theirs.figures, std::back_inserter(run.figures));
      if (!theirs.versions.empty()) run.versions[theirs.contender] = theirs.versions;
    }
  }

 private:
  /// The ranks say them once, for all.
  void set_conditions(std::vector<BenchFigure>& figures) const {
    for (BenchFigure& figure : figures) {
      figure.link = link_;
      figure.beside_compute = beside_compute_;
    }
  }

  RunOptions job_from(std::size_t first_heat, const std::string& rows) const {
    RunOptions job = command_.job;
    job.ranks = ranks_;
    job.program = std::filesystem::read_symlink("/proc/self/exe");
    job.arguments = arguments_for_rank(command_, rows, first_heat, turns_);
    return job;
  }

  /// Adds the figures of complete heats from `heat` on, and returns the first that is not.
  std::size_t take(const std::vector<BenchFigure>& found, std::size_t heat) {
    auto next = found.begin();
    for (; heat < heats_.size(); ++heat) {
      const auto count = static_cast<std::ptrdiff_t>(figure_count(heats_[heat]));
      if (found.end() - next < count) break;
      figures_.insert(figures_.end(), next, next + count);
      next += count;
    }
    return heat;
  }

  const BenchCommand& command_;
  const std::vector<BenchHeat>& heats_;
  int ranks_;
  std::vector<std::unique_ptr<BenchPeer>> peers_;
  std::vector<std::string> turns_;
  std::vector<BenchFigure> figures_;
  Link link_ = Link::shared;
  bool beside_compute_ = false;
};

std::size_t count_figures(const BenchTask& task) {
  std::size_t count = 0;
  for (const BenchHeat& heat : task.heats) count += figure_count(heat);
  return count;
}

/// Each once, as tasks name them.
std::vector<int> rank_counts(std::span<const BenchTask> tasks) {
  std::vector<int> counts;
  for (const BenchTask& task : tasks)
    for (const int count : task.ranks)
      if (std::ranges::find(counts, count) == counts.end()) counts.push_back(count);
  return counts;
}

}  // namespace

BenchJobEnd run_bench_jobs(std::span<const BenchTask> tasks, BenchRun& run) {
  // From here on a signal ends the run, and what was measured is kept.
  const SignalSource signals;
  std::size_t total = 0;
  for (const BenchTask& task : tasks) total += count_figures(task) * task.ranks.size();
  ProgressBar progress("figures", total);
  std::size_t done = 0;
  GpuUse use;
  BenchJobEnd all;
  for (const int count : rank_counts(tasks))
    for (const BenchTask& task : tasks) {
      if (std::ranges::find(task.ranks, count) == task.ranks.end()) continue;
      if (all.was_interrupted || all.never_began) break;
      BenchJob job(task.command, task.heats, count, signals);
      const BenchJobEnd end = job.run(progress, done, run.machine, use);
      if (end.status != 0) all.status = end.status;
      all.was_interrupted = end.was_interrupted;
      all.never_began = end.never_began && run.figures.empty();
      if (!end.was_interrupted) progress.show(done += count_figures(task));
      job.add_to(run);
    }
  run.complete = done == total && all.status == 0;
  return all;
}

}  // namespace iridium::cli
