// What reading and writing a peer's memory costs: bandwidth against the number of blocks beside a
// plain kernel that does the same to plain pointers, atomics per second, latency of small puts.
// Rank 0 measures; the others hold the memory. It prints one line per figure, or with --json one
// JSON object per line.
// Run it with: iridium run -n 2 [--backend cuda] -- build/bench/remote [--json]
#include "remote_kernels.h"

#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "figures.h"
#include "iridium/iridium.h"

namespace iridium::bench {
namespace {

constexpr int samples = 9;
constexpr double sample_us = 10'000;
constexpr int ping_pongs = 1000;

class Bench {
 public:
  Bench(Context& context, bool json)
      : context_(context),
        team_(context.world()),
        stream_(context.make_stream()),
        count_((context.backend() == BackendKind::host ? 8u << 20 : 64u << 20) / sizeof(float)),
        in_(context.allocate<float>(count_)),
        out_(context.allocate<float>(count_)),
        local_(context.allocate<float>(count_ * max_ranks)),
        words_(context.allocate<std::uint32_t>(max_blocks * Block::gpu_threads)),
        report_(context, json) {
    context.prepare<Put>();
    context.prepare<Get>();
    context.prepare<AllStore<float>>();
    context.prepare<AllStore<fp16>>();
    context.prepare<AllLoad<float>>();
    context.prepare<PlainCopy>();
    context.prepare<Atomics>();
    context.prepare<PingPong>();
    set_inputs();
  }

  void measure() {
    const bool on_gpu = context_.backend() != BackendKind::host;
    for (const int blocks : on_gpu ? std::vector{8, 16, 32, 66, 132} : std::vector{1, 2})
      measure_bandwidth(blocks);
    measure_atomics(on_gpu ? 132 : 2);
    if (context_.size() == 2)
      for (const std::size_t count : {2u, 1024u}) measure_latency(count);
  }

 private:
  static constexpr int max_blocks = 132;

  float value(int rank, std::size_t i) const {
    // Sums of up to eight are exact.
    return static_cast<float>((i * 2654435761u + static_cast<std::size_t>(rank) * 97) % 65536);
  }

  void set_inputs() {
    std::vector<float> values(count_);
    for (std::size_t i = 0; i < count_; ++i) values[i] = value(context_.rank(), i);
    stream_.copy(in_.data(), values.data(), in_.bytes());
    stream_.fill(words_.data(), 0, words_.bytes());
    stream_.fill(out_.data(), 0, out_.bytes());
    stream_.fill(local_.data(), 0, local_.bytes());
    stream_.synchronize();
    context_.barrier();
  }

  double replay(const Graph& graph, int times) {
    const auto start = Clock::now();
    for (int i = 0; i < times; ++i) stream_.launch(graph);
    stream_.synchronize();
    return microseconds_since(start);
  }

  /// Both in turns, so that neither has the better moments.
  void compare(const std::string& what, std::size_t bytes, int blocks,
               const std::function<void()>& ours, const std::function<void()>& plain) {
    constexpr int calls = 10;
    std::vector<Graph> graphs;
    for (const auto* call : {&ours, &plain}) {
      stream_.begin_capture();
      for (int i = 0; i < calls; ++i) (*call)();
      graphs.push_back(stream_.end_capture());
      replay(graphs.back(), 2);
    }
    const int replays = 1 + static_cast<int>(sample_us / replay(graphs[1], 1));
    std::vector<double> times[2];
    for (int i = 0; i < samples; ++i)
      for (const std::size_t which : {0u, 1u})
        times[which].push_back(replay(graphs[which], replays) / (replays * calls));
    team_.check();
    report_.add({.what = what, .times = times[0], .bytes = bytes, .blocks = blocks});
    report_.add({.what = "plain " + what, .times = times[1], .bytes = bytes, .blocks = blocks});
  }

  void expect(const char* what, const float* at, const std::function<float(std::size_t)>& right) {
    std::vector<float> values(count_);
    stream_.copy(values.data(), at, count_ * sizeof(float));
    stream_.fill(const_cast<float*>(at), 0, count_ * sizeof(float));
    stream_.synchronize();
    for (std::size_t i = 0; i < count_; ++i)
      if (values[i] != right(i))
        throw std::runtime_error(std::string(what) + ": element " + std::to_string(i) + " is " +
                                 std::to_string(values[i]) + " instead of " +
                                 std::to_string(right(i)));
  }

  PlainCopy plain(int targets, int sources) const {
    PlainCopy copy = {};
    copy.targets = targets;
    copy.sources = sources;
    copy.count = count_;
    for (int i = 0; i < max_ranks; ++i) {
      copy.to[i] = local_.data() + static_cast<std::size_t>(i) * count_;
      copy.from[i] = targets > 1 || sources == 1
                         ? in_.data()
                         : local_.data() + static_cast<std::size_t>(i + 1) % max_ranks * count_;
    }
    if (sources > 1) copy.to[0] = out_.data();
    return copy;
  }

  void measure_bandwidth(int blocks) {
    const int last = context_.size() - 1;
    if (context_.rank() == 0) {
      const std::size_t bytes = count_ * sizeof(float);
      const auto launch = [&](const auto& kernel) { context_.launch(stream_, blocks, kernel); };
      const auto copy = [&] { launch(plain(1, 1)); };
      compare(
          "put", bytes, blocks, [&] { launch(Put{lane(), out_.data(), in_.data(), count_, last}); },
          copy);
      expect("put", out_.at(last), [&](std::size_t i) { return value(0, i); });
      compare(
          "get", bytes, blocks, [&] { launch(Get{lane(), out_.data(), in_.data(), count_, last}); },
          copy);
      expect("get", out_.data(), [&](std::size_t i) { return value(last, i); });
      const auto size = static_cast<std::size_t>(context_.size());
      compare(
          "all-store", bytes * size, blocks,
          [&] { launch(AllStore<float>{lane(), out_.data(), in_.data(), count_}); },
          [&] { launch(plain(context_.size(), 1)); });
      for (int rank = 0; rank <= last; ++rank)
        expect("all-store", out_.at(rank), [&](std::size_t i) { return value(0, i); });
      compare(
          "all-store, fp16", bytes * size, blocks,
          [&] {
            launch(AllStore<fp16>{lane(), reinterpret_cast<fp16*>(out_.data()),
                                  reinterpret_cast<const fp16*>(in_.data()), count_ * 2});
          },
          [&] { launch(plain(context_.size(), 1)); });
      for (int rank = 0; rank <= last; ++rank)
        expect("all-store, fp16", out_.at(rank), [&](std::size_t i) { return value(0, i); });
      compare(
          "all-load", bytes * size, blocks,
          [&] { launch(AllLoad<float>{lane(), out_.data(), in_.data(), count_}); },
          [&] { launch(plain(1, context_.size())); });
      launch(AllLoad<float>{lane(), out_.data(), in_.data(), count_});
      expect("all-load", out_.data(), [&](std::size_t i) {
        float sum = 0;
        for (int rank = 0; rank <= last; ++rank) sum += value(rank, i);
        return sum;
      });
    }
    context_.barrier();
  }

  void measure_atomics(int blocks) {
    const int last = context_.size() - 1;
    if (context_.rank() == 0) {
      const bool on_gpu = context_.backend() != BackendKind::host;
      const int threads = on_gpu ? Block::gpu_threads : 1;
      constexpr int per_thread = 1000;
      for (const bool spread : {true, false}) {
        std::vector<double> times;
        // The first one is the warm-up.
        for (int i = 0; i <= samples; ++i) {
          const auto start = Clock::now();
          context_.launch(stream_, blocks, Atomics{words_.at(last), per_thread, spread});
          stream_.synchronize();
          times.push_back(microseconds_since(start));
        }
        times.erase(times.begin());
        report_.add(
            {.what = spread ? "atomic adds, an address per thread" : "atomic adds, one address",
             .times = std::move(times),
             .operations = static_cast<std::size_t>(blocks * threads) * per_thread,
             .blocks = blocks});
      }
    }
    context_.barrier();
  }

  /// Half of a round trip, as the host's clock tells it of a kernel with many.
  void measure_latency(std::size_t count) {
    std::vector<double> times;
    for (int i = 0; i <= samples; ++i) {
      context_.barrier();
      const auto start = Clock::now();
      context_.launch(stream_, Grid{.blocks = 1, .resident = true},
                      PingPong{team_.lane("ping_pong"), out_.data(), in_.data(), count,
                               words_.data(), next_flag_, ping_pongs});
      stream_.synchronize();
      times.push_back(microseconds_since(start) / (2 * ping_pongs));
      next_flag_ += ping_pongs;
      team_.check();
    }
    times.erase(times.begin());
    report_.add(
        {.what = "put and signal, one way", .times = times, .bytes = count * sizeof(float)});
  }

  Lane lane() const { return team_.lane("bench"); }

  Context& context_;
  Team team_;
  Stream stream_;
  std::size_t count_;
  SymmetricArray<float> in_;
  SymmetricArray<float> out_;
  SymmetricArray<float> local_;
  SymmetricArray<std::uint32_t> words_;
  std::uint32_t next_flag_ = 1'000'000;
  Report report_;
};

void run(bool json) {
  ContextOptions options;
  options.heap_bytes = std::size_t{1} << 30;
  // The other ranks wait for rank 0.
  options.timeout = std::chrono::minutes(5);
  Context context(options);
  if (context.size() > max_ranks)
    throw std::runtime_error("at most " + std::to_string(max_ranks) + " ranks");
  Bench(context, json).measure();
}

}  // namespace
}  // namespace iridium::bench

int main(int argc, char** argv) {
  try {
    if (argc > 2 || (argc == 2 && std::string_view(argv[1]) != "--json"))
      throw std::runtime_error("usage: remote [--json]");
    iridium::bench::run(argc == 2);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
