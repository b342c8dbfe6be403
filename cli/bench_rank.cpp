// What the ranks of `iridium bench` do: check, measure in turns, check again.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "cli/bench.h"
#include "cli/bench_machine.h"
#include "cli/bench_peer.h"
#include "cli/bench_results.h"
#include "iridium/bootstrap.h"
#include "iridium/context.h"
#include "iridium/errors.h"
#include "iridium/probe.h"

namespace iridium::cli {
namespace {

constexpr int most_calls_per_graph = 50;
/// A graph is not larger than what takes about so long: large copies need few calls in it.
constexpr double graph_us = 2000;
constexpr int trial_calls = 3;
constexpr double most_repeats = 10'000;

using Clock = std::chrono::steady_clock;

/// Microseconds per call; several calls are timed at a time.
struct Times {
  std::vector<double> samples = {};
  int repeats = 0;  ///< of a sample, which all ranks agree on
};

/// Throws `unsupported` for a grid that the lane has no room for: with as many ranks on a GPU, that
/// is nobody's fault. Plain copies need no lane.
void require_grid(const BenchHeat::Entry& entry, const Team& team) {
  const auto asked = entry.arguments.find("blocks");
  if (entry.contender != "iridium" || asked == entry.arguments.end()) return;
  if (asked->second != "automatic" && std::stoi(asked->second) > team.max_blocks())
    throw Error(Errc::unsupported,
                fmt::format("{} blocks; the team's lane has {}", asked->second, team.max_blocks()));
}

/// One contender of a heat, with a team of its own: one that it ends is of no use to others.
///
/// All functions are collective over the world. What a rank does alone may fail there only; after
/// it the ranks exchange how it went, and once one has failed nobody goes on.
class Contestant {
 public:
  Contestant(Context& context, StreamRef& stream, const BenchHeat::Entry& entry, std::uint64_t seed)
      : world_(context.world()), stream_(stream), seed_(seed) {
    attempt([&] {
      team_ = context.make_team(world_.ranks());
      require_grid(entry, *team_);
      prepared_ = entry.operation->prepare(context, *team_, entry.arguments);
    });
    is_skipped_ = code_ == Errc::out_of_memory || code_ == Errc::unsupported;
    validate();
    capture();
  }

  /// Why there is no number; empty when all is well.
  const std::string& failed() const { return failed_; }
  /// Whether that is because it cannot be had here: there is no room, or no such thing.
  bool is_skipped() const { return is_skipped_; }
  const OperationCase& prepared() const { return *prepared_; }
  const Times& replayed() const { return replayed_; }
  const Times& eager() const { return eager_; }
  int calls_per_graph() const { return calls_; }

  /// One more sample of each kind.
  void measure(double sample_us) {
    sample(replayed_, calls_, sample_us, [this] { stream_.launch(*graph_); });
    sample(eager_, 1, sample_us, [this] { prepared_->launch_alone(stream_); });
  }

  /// That it still does the right thing.
  void check_again() {
    // The probe has used up some seeds behind the first.
    const std::uint64_t seed = seed_ + 1000;
    attempt([&] { prepared_->set_inputs(seed); });
    attempt([&] {
      prepared_->launch(stream_);
      stream_.synchronize();
      team_->check();
      const std::string difference = prepared_->check(seed);
      if (!difference.empty())
        throw Error(Errc::system, "wrong result after the measurement: " + difference);
    });
  }

 private:
  /// How a rank's part went.
  struct Outcome {
    double microseconds = 0;
    Errc code = {};
    char failure[480] = {};
  };

  /// Runs `body` unless something has failed before; returns how long it took on rank 0.
  double attempt(const std::function<void()>& body) {
    if (!failed_.empty()) return 0;
    Outcome mine;
    try {
      const auto start = Clock::now();
      body();
      const std::chrono::duration<double, std::micro> elapsed = Clock::now() - start;
      mine.microseconds = elapsed.count();
    } catch (const Error& error) {
      mine.code = error.code();
      const std::string_view text = error.what();
      std::memcpy(mine.failure, text.data(), std::min(text.size(), sizeof(mine.failure) - 1));
    }
    // Ranks whose kernels waited in vain come a timeout later.
    const std::vector<Outcome> all = world_.all_gather(mine, 2);
    for (const Outcome& one : all)
      if (one.failure[0] != 0 && failed_.empty()) {
        failed_ = one.failure;
        code_ = one.code;
      }
    return all[0].microseconds;
  }

  void validate() {
    attempt([&] {
      ProbeTarget target = target_of(*prepared_);
      target.check = [this](std::uint64_t seed) {
        team_->check();
        return prepared_->check(seed);
      };
      const ProbeResult result = probe(stream_, target, {.team = world_, .seed = seed_});
      if (result.verdict != Verdict::capturable)
        throw Error(Errc::system,
                    fmt::format("{} at {}: {}", name(result.verdict), result.step, result.reason));
    });
  }

  void capture() {
    const double once = time([this] { prepared_->launch_alone(stream_); }, trial_calls);
    calls_ = static_cast<int>(std::clamp(graph_us / once, 1.0, double{most_calls_per_graph}));
    attempt([&] {
      stream_.begin_capture();
      for (int i = 0; i < calls_; ++i) prepared_->launch_alone(stream_);
      graph_ = stream_.end_capture();
    });
  }

  /// Microseconds per repeat, from the first submission to the end of the work.
  double time(const std::function<void()>& submit, int repeats) {
    const double elapsed = attempt([&] {
      for (int i = 0; i < repeats; ++i) submit();
      stream_.synchronize();
      team_->check();
    });
    return std::max(1e-3, elapsed / repeats);
  }

  void sample(Times& times, int calls, double sample_us, const std::function<void()>& submit) {
    if (times.repeats == 0) times.repeats = choose_repeats(sample_us, submit);
    times.samples.push_back(time(submit, times.repeats) / calls);
  }

  /// How many repeats take as long as a sample is to take; warms up meanwhile.
  int choose_repeats(double sample_us, const std::function<void()>& submit) {
    // Twice: one stall of a rank would leave samples of few repeats.
    const auto lesser_time = [&](double count) {
      const double first = time(submit, static_cast<int>(count));
      return std::min(first, time(submit, static_cast<int>(count)));
    };
    double repeats = 1;
    double once = lesser_time(repeats);
    while (repeats * once < sample_us / 2 && repeats < most_repeats && failed_.empty()) {
      repeats = std::min({most_repeats, 10 * repeats, std::ceil(sample_us / once)});
      once = lesser_time(repeats);
    }
    return static_cast<int>(std::clamp(sample_us / once, 1.0, most_repeats));
  }

  Team world_;
  std::optional<Team> team_;
  StreamRef& stream_;
  std::uint64_t seed_;
  std::unique_ptr<OperationCase> prepared_;
  std::optional<Graph> graph_;
  int calls_ = 1;
  std::string failed_;
  std::optional<Errc> code_;  ///< of what has failed
  bool is_skipped_ = false;
  Times replayed_;
  Times eager_;
};

double at_share(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

void set_numbers(BenchFigure& figure, const Contestant& contestant, const Times& times, int calls) {
  std::vector<double> sorted = times.samples;
  std::ranges::sort(sorted);
  figure.samples = sorted.size();
  figure.calls = static_cast<std::size_t>(times.repeats) * static_cast<std::size_t>(calls);
  figure.median_us = at_share(sorted, 0.5);
  figure.p10_us = at_share(sorted, 0.1);
  figure.p90_us = at_share(sorted, 0.9);
  const double bytes = static_cast<double>(contestant.prepared().bytes());
  figure.algorithm_gbps = bytes / figure.median_us / 1000;
  figure.bus_gbps = figure.algorithm_gbps * contestant.prepared().bus_factor();
  figure.tflops = contestant.prepared().flops() / figure.median_us / 1e6;
}

/// On CPUs nothing else needs the room.
bool leaves_room(const Context& context) {
  return context.backend() == BackendKind::cuda && context.world().beside_compute();
}

/// Two figures per entry; the share of the fastest plain copy is known at the end.
std::vector<BenchFigure> figures_of(const BenchHeat& heat, const Team& world,
                                    const std::vector<std::unique_ptr<Contestant>>& contestants) {
  std::vector<BenchFigure> figures;
  double copy_gbps = 0;
  for (std::size_t i = 0; i < heat.entries.size(); ++i) {
    const Contestant& contestant = *contestants[i];
    for (const bool is_graph : {true, false}) {
      BenchFigure figure =
          blank_figure(heat, heat.entries[i], world.size(), is_graph ? "graph" : "eager");
      (contestant.is_skipped() ? figure.skipped : figure.failed) = contestant.failed();
      if (figure.has_numbers()) {
        figure.chosen = contestant.prepared().chosen();
        set_numbers(figure, contestant, is_graph ? contestant.replayed() : contestant.eager(),
                    is_graph ? contestant.calls_per_graph() : 1);
      }
      if (figure.contender != "iridium") copy_gbps = std::max(copy_gbps, figure.algorithm_gbps);
      figures.push_back(std::move(figure));
    }
  }
  if (copy_gbps > 0)
    for (BenchFigure& figure : figures) figure.copy_share = figure.algorithm_gbps / copy_gbps;
  return figures;
}

/// Nobody does anything while a peer has its turn.
void wait_for_peer(Context& context, const std::string& folder, std::size_t heat, int round) {
  if (context.rank() == 0) give_turn(folder, heat, round);
  const auto timeouts = std::chrono::milliseconds(turn_patience) / context.timeout();
  context.world().all_gather(0, static_cast<int>(timeouts) + 2);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Room for a heat's buffers (inputs, messages and outputs of every entry) and lanes, as far as
/// there is memory: what has no room is skipped. Nothing where the environment says how much.
std::optional<std::size_t> heap_bytes(const std::vector<BenchHeat>& heats, int ranks) {
  if (!variable("IRIDIUM_HEAP_BYTES").empty()) return std::nullopt;
  std::size_t most = 0;
  for (const BenchHeat& heat : heats) {
    const std::size_t outputs =
        heat.operation == "all_gather" ? static_cast<std::size_t>(ranks) : 1;
    // Elements have 4 bytes at most.
    const std::size_t matrices = heat.shape ? heat.shape->elements() * 4 : 0;
    most = std::max(most, heat.entries.size() *
                              ((2 + outputs) * heat.bytes + matrices + (std::size_t{32} << 20)));
  }
  return std::min((std::size_t{128} << 20) + most,
                  memory_for_rank(variable("IRIDIUM_BACKEND"), ranks));
}

}  // namespace

std::vector<BenchFigure> run_heat(Context& context, StreamRef& stream, const BenchHeat& heat,
                                  std::size_t number, const BenchCommand& command) {
  // The same on every rank, and another in every heat.
  const std::uint64_t seed =
      context.world().broadcast(std::uint64_t{std::random_device()()} << 16, 0);
  std::vector<std::unique_ptr<Contestant>> contestants;
  for (const BenchHeat::Entry& entry : heat.entries)
    contestants.push_back(std::make_unique<Contestant>(context, stream, entry, seed));
  const double sample_us = command.sample_milliseconds * 1000;
  // In turns, round after round: what disturbs the machine for a while disturbs all of them.
  for (int round = 0; round < bench_rounds; ++round) {
    for (const auto& contestant : contestants)
      for (int i = round; i < command.samples; i += bench_rounds) contestant->measure(sample_us);
    for (const std::string& folder : command.turns) wait_for_peer(context, folder, number, round);
  }
  for (const auto& contestant : contestants) contestant->check_again();
  return figures_of(heat, context.world(), contestants);
}

int bench_as_rank(const BenchCommand& command) {
  const std::vector<BenchHeat> heats = plan(command);
  const Job job = Job::from_environment();
  Context context(job, ContextOptions{.heap_bytes = heap_bytes(heats, job.size)});
  Stream stream = context.make_stream();
  std::ofstream rows;
  if (context.rank() == 0) {
    rows.open(command.rows);
    rows << name(context.backend()) << ' ' << name(context.world().link()) << ' '
         << leaves_room(context) << '\n'
         << std::flush;
  }
  for (std::size_t i = command.first_heat; i < heats.size(); ++i) {
    const std::vector<BenchFigure> figures = run_heat(context, stream, heats[i], i, command);
    if (context.rank() != 0) continue;
    for (const BenchFigure& figure : figures) rows << as_line(figure) + "\n" << std::flush;
    if (!rows) throw Error(Errc::system, "cannot write to " + command.rows);
  }
  context.barrier();
  return 0;
}

}  // namespace iridium::cli
