// What kernels cost: device barriers, launches and, on the host backend, switches between fibers.
// Every rank measures together; rank 0 prints one line per figure, or with --json one JSON object
// per line. With --turns DIR it takes turns with another program (tools/bench_barrier.sh).
// Run it with: iridium run -n 8 [--backend cuda] -- build/bench/device [--json] [--turns DIR]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "figures.h"
#include "iridium/iridium.h"

namespace {

using iridium::bench::Clock;
using iridium::bench::microseconds_since;

constexpr int calls_per_graph = 50;
constexpr int samples = 15;
/// Long against the moments between which ranks leave the host's barrier.
constexpr double sample_us = 20'000;
constexpr int calls_per_submission = 1000;
constexpr int barriers_in_kernel = 1000;
constexpr int fiber_switches = 200'000;
constexpr int visibility_steps = 50;
constexpr int last_turn = 5;
/// The other program has its turn, and starts, within this.
constexpr std::chrono::seconds turn_timeout{280};

struct Empty {
  IR_DEVICE void operator()(iridium::BlockOf<32>) const {}
};

template <int Threads>
struct Barriers {
  iridium::Lane lane;
  int count;
  std::uint64_t* nanoseconds;  ///< one per block

  IR_DEVICE void operator()(iridium::BlockOf<Threads> block) const {
    iridium::LaneCall call(lane, block);
    if (!call.enter()) return;
    const std::uint64_t start = block.nanoseconds();
    for (int i = 0; i < count; ++i)
      if (!call.barrier()) return;
    if (block.is_leader()) nanoseconds[block.index()] = block.nanoseconds() - start;
    call.finish();
  }
};

struct Send {
  std::uint32_t* to;
  std::uint32_t value;

  IR_DEVICE void operator()(iridium::BlockOf<32> block) const {
    if (block.is_leader()) *to = value;
  }
};

struct Expect {
  const std::uint32_t* at;
  std::uint32_t value;
  std::uint32_t* wrong;

  IR_DEVICE void operator()(iridium::BlockOf<32> block) const {
    if (block.is_leader() && *at != value) ++*wrong;
  }
};

struct Pauses {
  int count;

  IR_DEVICE void operator()(iridium::BlockOf<32> block) const {
    for (int i = 0; i < count; ++i) block.pause(false);
  }
};

class Bench {
 public:
  Bench(iridium::Context& context, bool json)
      : context_(context),
        team_(context.world()),
        stream_(context.make_stream()),
        nanoseconds_(context.allocate<std::uint64_t>(many_blocks)),
        report_(context, json) {
    // All before anybody waits for anybody: loading one may wait for kernels that run.
    context.prepare<Empty>();
    context.prepare<Barriers<32>>();
    context.prepare<Barriers<512>>();
    context.prepare<Send>();
    context.prepare<Expect>();
    context.prepare<Pauses>();
    context.barrier();
    check_visibility();
    barriers_ = capture([this] { iridium::device_barrier(stream_, team_); });
    empties_ = capture([this] { launch_empty(); });
    replay(*barriers_, 3);
    replay(*empties_, 3);
  }

  /// What programs that take turns measure.
  void measure_graphs(int round) {
    add("barrier kernel", round, replay_times(*barriers_));
    add("empty kernel", round, replay_times(*empties_));
  }

  void measure_all() {
    constexpr int round = 1;
    measure_graphs(round);
    add("barrier inside a kernel", round, barrier_times<32>(1));
    add("barrier inside a kernel, 8 blocks", round, barrier_times<512>(many_blocks));
    add("eager launch", round, submission_times([this] { launch_empty(); }));
    add("device_barrier call", round,
        submission_times([this] { iridium::device_barrier(stream_, team_); }));
    if (context_.backend() != iridium::BackendKind::host) return;
    add("fiber switch, 2 blocks", round, switch_times(2));
    add("fiber switch, 64 blocks", round, switch_times(64));
  }

 private:
  static constexpr int many_blocks = 8;

  void add(const char* what, int round, std::vector<double> times) const {
    team_.check();
    report_.add({.what = what, .times = std::move(times), .round = round});
  }

  void launch_empty() { context_.launch(stream_, 1, Empty{}); }

  iridium::Graph capture(const std::function<void()>& call) {
    stream_.begin_capture();
    for (int i = 0; i < calls_per_graph; ++i) call();
    return stream_.end_capture();
  }

  /// Microseconds from the first submission to the end of the work.
  double replay(const iridium::Graph& graph, int times) {
    context_.barrier();
    const auto start = Clock::now();
    for (int i = 0; i < times; ++i) stream_.launch(graph);
    stream_.synchronize();
    return microseconds_since(start);
  }

  std::vector<double> replay_times(const iridium::Graph& graph) {
    constexpr int trial = 10;
    const double once = team_.broadcast(replay(graph, trial), 0) / trial;
    const int replays = static_cast<int>(std::clamp(sample_us / once, 1.0, 10'000.0));
    std::vector<double> times;
    for (int i = 0; i < samples; ++i)
      times.push_back(replay(graph, replays) / (replays * calls_per_graph));
    return times;
  }

  /// The slowest block's time, as the kernel's own clock tells it.
  template <int Threads>
  double time_barriers(int blocks) {
    context_.barrier();
    context_.launch(
        stream_, iridium::Grid{.blocks = blocks, .resident = true},
        Barriers<Threads>{team_.lane("bench barriers"), barriers_in_kernel, nanoseconds_.data()});
    std::vector<std::uint64_t> times(static_cast<std::size_t>(blocks));
    stream_.copy(times.data(), nanoseconds_.data(), times.size() * sizeof times[0]);
    stream_.synchronize();
    team_.check();
    return static_cast<double>(*std::max_element(times.begin(), times.end())) / 1000;
  }

  template <int Threads>
  std::vector<double> barrier_times(int blocks) {
    time_barriers<Threads>(blocks);
    std::vector<double> times;
    for (int i = 0; i < samples; ++i)
      times.push_back(time_barriers<Threads>(blocks) / barriers_in_kernel);
    return times;
  }

  double time_submission(const std::function<void()>& call) {
    context_.barrier();
    const auto start = Clock::now();
    for (int i = 0; i < calls_per_submission; ++i) call();
    const double time = microseconds_since(start);
    stream_.synchronize();
    return time;
  }

  std::vector<double> submission_times(const std::function<void()>& call) {
    time_submission(call);
    std::vector<double> times;
    for (int i = 0; i < samples; ++i) times.push_back(time_submission(call) / calls_per_submission);
    return times;
  }

  double time_switches(int blocks) {
    context_.barrier();
    const auto start = Clock::now();
    context_.launch(stream_, blocks, Pauses{fiber_switches / blocks});
    stream_.synchronize();
    return microseconds_since(start);
  }

  std::vector<double> switch_times(int blocks) {
    time_switches(blocks);
    std::vector<double> times;
    for (int i = 0; i < samples; ++i) times.push_back(time_switches(blocks) / fiber_switches);
    return times;
  }

  /// Every rank writes to the next one, and after a barrier each finds what was written to it.
  void exchange(std::uint32_t* slot, std::uint32_t* wrong) {
    const int next = (context_.rank() + 1) % context_.size();
    const int previous = (context_.rank() + context_.size() - 1) % context_.size();
    const auto value = [](int step, int rank) {
      return static_cast<std::uint32_t>(step * iridium::max_team_size + rank + 1);
    };
    for (int step = 0; step < visibility_steps; ++step) {
      context_.launch(stream_, 1, Send{context_.at(slot, next), value(step, context_.rank())});
      iridium::device_barrier(stream_, team_);
      context_.launch(stream_, 1, Expect{slot, value(step, previous), wrong});
      iridium::device_barrier(stream_, team_);
    }
  }

  void check_visibility() {
    const auto words = context_.allocate<std::uint32_t>(2);
    stream_.fill(words.data(), 0, words.bytes());
    stream_.synchronize();
    context_.barrier();
    exchange(words.data(), words.data() + 1);
    stream_.begin_capture();
    exchange(words.data(), words.data() + 1);
    const iridium::Graph graph = stream_.end_capture();
    for (int i = 0; i < 3; ++i) stream_.launch(graph);
    std::uint32_t wrong = 0;
    stream_.copy(&wrong, words.data() + 1, sizeof wrong);
    stream_.synchronize();
    team_.check();
    if (wrong != 0)
      throw std::runtime_error("device_barrier: " + std::to_string(wrong) +
                               " values were not there after it");
  }

  iridium::Context& context_;
  iridium::Team team_;
  iridium::Stream stream_;
  iridium::SymmetricArray<std::uint64_t> nanoseconds_;
  iridium::bench::Report report_;
  std::optional<iridium::Graph> barriers_;
  std::optional<iridium::Graph> empties_;
};

struct Options {
  bool json = false;
  std::string turns;
};

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--json")
      options.json = true;
    else if (argument == "--turns" && i + 1 < count)
      options.turns = arguments[++i];
    else
      throw std::runtime_error("usage: device [--json] [--turns DIR]");
  }
  return options;
}

/// Ended by the program that drives the turns.
void wait_for_file(const std::string& path) {
  const auto deadline = Clock::now() + turn_timeout;
  while (!std::ifstream(path).good()) {
    if (Clock::now() > deadline)
      throw std::runtime_error(path + " did not appear within " +
                               std::to_string(turn_timeout.count()) + " s");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void take_turns(iridium::Context& context, const std::string& folder) {
  const auto path = [&](int round) { return folder + "/iridium." + std::to_string(round); };
  const auto end_turn = [&](int round) {
    context.barrier();
    if (context.rank() == 0 && !std::ofstream(path(round) + ".done"))
      throw std::runtime_error("cannot write " + path(round) + ".done");
  };
  Bench bench(context, true);
  // Round 0 is the setup.
  end_turn(0);
  for (int round = 1; round <= last_turn; ++round) {
    if (context.rank() == 0) wait_for_file(path(round));
    context.barrier();
    bench.measure_graphs(round);
    end_turn(round);
  }
}

void run(const Options& options) {
  iridium::ContextOptions context_options;
  // While the other program has its turn, ranks wait for rank 0.
  if (!options.turns.empty()) context_options.timeout = turn_timeout + std::chrono::seconds(20);
  iridium::Context context(context_options);
  if (options.turns.empty())
    Bench(context, options.json).measure_all();
  else
    take_turns(context, options.turns);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
