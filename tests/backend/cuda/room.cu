// Whether kernels that compute find room on the GPU while calls of all other ranks wait for them
// there: graphs in which all_reduces alternate with a kernel of clusters whose blocks take a
// processor each, as cuBLAS's products of some 256 rows do. In every layer another rank computes
// last. Each team has a stream and a graph of its own, and the sums are checked. Prints how long a
// layer takes, or fails. Run it with:
// iridium run -n 8 --backend cuda -- build/tests/backend/cuda/room [--teams 2]
//   [--blocks N] [--cluster 16] [--replays N] [--late MICROSECONDS]
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "iridium/iridium.h"

namespace iridium::test {
namespace {

constexpr int compute_threads = 384;
constexpr int clusters = 2;
constexpr int layers = 16;
constexpr int batches = 20;
constexpr std::size_t count = (1u << 20) / sizeof(int);

struct Choice {
  int teams = 1;
  int blocks = 0;   ///< waiting ones of a call; 0: as many as the library lets a team have
  int cluster = 8;  ///< blocks of one
  int replays = 2000;
  int late = 60;  ///< by how many microseconds the last rank of a layer is
};

void require(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

__device__ std::uint64_t nanoseconds() {
  std::uint64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

__global__ void be_late(unsigned by_ns) {
  const std::uint64_t end = nanoseconds() + by_ns;
  while (nanoseconds() < end) {
  }
}

/// Makes the mean of the ranks' equal values, plus one, of their sum.
__global__ void __launch_bounds__(compute_threads, 1)
    compute(int* values, std::size_t size, int ranks) {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
#endif
  const std::size_t threads = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += threads)
    values[i] = values[i] / ranks + 1;
}

class Room {
 public:
  Room(Context& context, const Choice& choice) : context_(context), choice_(choice) {
    const int device = context.device();
    require(cudaSetDevice(device), "the rank's GPU");
    require(cudaDeviceGetAttribute(&memory_, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
            "the largest block memory");
    int has_clusters = 0;
    require(cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, device), "clusters");
    if (!has_clusters) choice_.cluster = 1;
    require(cudaFuncSetAttribute(compute, cudaFuncAttributeMaxDynamicSharedMemorySize, memory_),
            "block memory");
    if (choice_.cluster > 8)
      require(cudaFuncSetAttribute(compute, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
              "larger clusters");
    for (int i = 0; i < choice_.teams; ++i) {
      lines_.emplace_back(context_, team_options());
      record(lines_.back(), i);
    }
  }

  void measure() {
    const int replays = std::max(1, choice_.replays / batches);
    std::vector<double> times;  // microseconds
    for (int batch = 0; batch < batches; ++batch) {
      context_.barrier();
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < replays; ++i)
        for (Line& line : lines_) line.stream.launch(line.graphs.front());
      for (Line& line : lines_) {
        line.stream.synchronize();
        line.team.check();
      }
      const std::chrono::duration<double, std::micro> time =
          std::chrono::steady_clock::now() - start;
      times.push_back(time.count() / (replays * layers));
      for (Line& line : lines_) check(line, (batch + 1) * replays * layers);
    }
    std::ranges::sort(times);
    if (context_.rank() == 0)
      std::printf("%d ranks, %d teams, calls of %d blocks, clusters of %d: %.1f us a layer\n",
                  context_.size(), choice_.teams, lines_.front().team.max_blocks(), choice_.cluster,
                  times[times.size() / 2]);
  }

 private:
  /// A team, and what is called on it.
  struct Line {
    Line(Context& context, const TeamOptions& options)
        : team(context.make_team(context.world().ranks(), options)),
          stream(context.make_stream()),
          values(context.allocate<int>(count)) {
      stream.fill(values.data(), 0, values.bytes());
      stream.synchronize();
    }
    Team team;
    Stream stream;
    SymmetricArray<int> values;
    std::vector<Graph> graphs;
  };

  TeamOptions team_options() const {
    if (choice_.blocks == 0) return {};
    return {.max_blocks = choice_.blocks, .beside_compute = false};
  }

  /// Teams are late in turns, so that a rank which computes for one also waits in the others'.
  void record(Line& line, int team) {
    const auto native = static_cast<cudaStream_t>(line.stream.native_handle());
    line.stream.begin_capture();
    for (int layer = 0; layer < layers; ++layer) {
      all_reduce(line.stream, line.team, line.values, line.values, count,
                 {.algorithm = AllReduceAlgorithm::two_shot, .blocks = line.team.max_blocks()});
      if ((layer + team) % context_.size() == context_.rank())
        be_late<<<1, 1, 0, native>>>(1000u * static_cast<unsigned>(choice_.late));
      require(cudaGetLastError(), "the kernel that is late");
      launch_compute(line, native);
    }
    line.graphs.push_back(line.stream.end_capture());
  }

  void launch_compute(Line& line, cudaStream_t native) {
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {static_cast<unsigned>(choice_.cluster), 1, 1};
    cudaLaunchConfig_t grid = {};
    grid.gridDim = static_cast<unsigned>(clusters * choice_.cluster);
    grid.blockDim = compute_threads;
    grid.dynamicSmemBytes = static_cast<std::size_t>(memory_);
    grid.stream = native;
    grid.attrs = &cluster;
    grid.numAttrs = choice_.cluster > 1 ? 1 : 0;
    require(cudaLaunchKernelEx(&grid, compute, line.values.data(), count, context_.size()),
            "the kernel that computes");
  }

  void check(Line& line, int steps) const {
    std::vector<int> values(count);
    line.stream.copy(values.data(), line.values.data(), line.values.bytes());
    line.stream.synchronize();
    const auto wrong = std::ranges::find_if(values, [&](int value) { return value != steps; });
    if (wrong != values.end())
      throw std::runtime_error("element " + std::to_string(wrong - values.begin()) + " of " +
                               line.team.name() + " is " + std::to_string(*wrong) + " instead of " +
                               std::to_string(steps));
  }

  Context& context_;
  Choice choice_;
  int memory_ = 0;  ///< of a block: all that a processor has
  std::vector<Line> lines_;
};

Choice choice_of(int argc, char** argv) {
  Choice choice;
  const std::map<std::string, int*> numbers = {{"--teams", &choice.teams},
                                               {"--blocks", &choice.blocks},
                                               {"--cluster", &choice.cluster},
                                               {"--replays", &choice.replays},
                                               {"--late", &choice.late}};
  for (int i = 1; i < argc; ++i) {
    const auto number = numbers.find(argv[i]);
    if (number != numbers.end() && i + 1 < argc && std::atoi(argv[i + 1]) > 0)
      *number->second = std::atoi(argv[++i]);
    else
      throw std::runtime_error(
          "usage: room [--teams N] [--blocks N] [--cluster N] [--replays N] [--late "
          "MICROSECONDS]");
  }
  return choice;
}

void run(const Choice& choice) {
  ContextOptions options;
  options.backend = BackendKind::cuda;
  options.lanes_at_once = choice.teams;
  Context context(options);
  Room(context, choice).measure();
}

}  // namespace
}  // namespace iridium::test

int main(int argc, char** argv) {
  try {
    iridium::test::run(iridium::test::choice_of(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
