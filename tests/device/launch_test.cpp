// Launching kernels: what is refused, and what a file that nvcc has not compiled can do.
#include <gtest/gtest.h>

#include "device/rank_kernels.h"
#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

/// Launched from this file, which a C++ compiler compiles.
struct CountBlocks {
  std::uint32_t* counter;
  std::uint32_t* last_index;

  IR_DEVICE void operator()(BlockOf<32> block) const {
    if (!block.is_leader()) return;
    atomic_add(block, counter, 1u);
    if (block.index() == block.count() - 1) *last_index = static_cast<std::uint32_t>(block.index());
  }
};

struct Throws {
  IR_DEVICE void operator()(BlockOf<32> block) const {
#if !IR_ON_CUDA
    if (block.index() == 1) throw std::runtime_error("block 1 cannot");
#endif
  }
};

IR_SCENARIO(counts_blocks) {
  Context context(job, {.backend = BackendKind::host});
  Stream stream = context.make_stream();
  auto words = context.allocate<std::uint32_t>(2);
  Memory memory(context);
  for (const int blocks : {1, 2, 100, 5000}) {
    memory.write(words, {0, 0});
    context.launch(stream, blocks, CountBlocks{words.data(), words.data() + 1});
    context.launch(stream, Grid{.blocks = 1}, CountBlocks{words.data(), words.data() + 1});
    stream.synchronize();
    require(memory.read(words.data()) == static_cast<std::uint32_t>(blocks) + 1,
            "every block ran once");
  }
}
TEST(Launch, RunsEveryBlockOnce) {
  expect_all_ok(run_ranks(RankKind::processes, "counts_blocks", 1));
}

IR_SCENARIO(refused_launches) {
  Context context(job);
  Stream stream = context.make_stream();
  for (const int blocks : {0, -1}) {
    const Error error = require_error(Errc::invalid_argument, {},
                                      [&] { launch_resident(context, stream, blocks); });
    require(std::string(error.what()).find(std::to_string(blocks)) != std::string::npos,
            error.what());
  }
  launch_resident(context, stream, 1);
  stream.synchronize();
}
TEST(Launch, RefusesEmptyGrids) {
  expect_all_ok(run_ranks(RankKind::processes, "refused_launches", 1));
}

/// Only a GPU can get this wrong: on CPUs a kernel begins when the one before it has ended.
IR_SCENARIO(kernels_that_let_the_next_start) {
  constexpr int blocks = 3;
  constexpr std::uint32_t launches = 20;
  Context context(job);
  Stream stream = context.make_stream();
  Memory memory(context);
  auto words = context.allocate<std::uint32_t>(blocks);
  auto seen = context.allocate<std::uint32_t>(blocks);
  memory.write(words, std::vector<std::uint32_t>(blocks, 0));
  const auto launch_all = [&] {
    for (std::uint32_t i = 0; i < launches; ++i)
      launch_late_increment(context, stream, blocks, std::chrono::microseconds(50), words.data(),
                            i % 4 < 2);
    stream.copy(seen.data(), words.data(), words.bytes());
  };
  const auto require_seen = [&](std::uint32_t runs) {
    stream.synchronize();
    require(memory.read(seen) == std::vector<std::uint32_t>(blocks, runs * launches),
            "kernels of a stream run one after the other");
  };
  launch_all();
  require_seen(1);
  stream.begin_capture();
  launch_all();
  const Graph graph = stream.end_capture();
  stream.launch(graph);
  stream.launch(graph);
  launch_all();
  stream.launch(graph);
  require_seen(5);
}
TEST(LaunchOrder, IsKeptThoughKernelsLetTheNextStart) {
  expect_all_ok(run_ranks(RankKind::processes, "kernels_that_let_the_next_start", 1));
}

IR_SCENARIO(throwing_block) {
  Context context(job, {.backend = BackendKind::host});
  Stream stream = context.make_stream();
  context.launch(stream, 3, Throws());
  const Error error = require_error(Errc::stream_failed, {}, [&] { stream.synchronize(); });
  require(std::string(error.what()).find("block 1 cannot") != std::string::npos, error.what());
  context.launch(stream, 1, Throws());
  stream.synchronize();
}
TEST(Launch, ABlockThatThrowsFailsTheStreamOnce) {
  expect_all_ok(run_ranks(RankKind::processes, "throwing_block", 1));
}

/// Also recorded, and with several values waiting: none may lie where it should by chance.
IR_SCENARIO(wide_kernels) {
  constexpr std::uint32_t launches = 16;
  Context context(job);
  Stream stream = context.make_stream();
  Memory memory(context);
  auto words = context.allocate<std::uint32_t>(launches * 2);
  memory.write(words, std::vector<std::uint32_t>(launches * 2, 99));
  const auto launch_all = [&] {
    for (std::uint32_t i = 0; i < launches; ++i) {
      WideKernel kernel = {{}, words.data() + 2 * i};
      for (std::uint32_t& value : kernel.held) value = i;
      launch_wide(context, stream, 1, kernel);
    }
  };
  const auto require_seen = [&](const std::string& what) {
    stream.synchronize();
    const std::vector<std::uint32_t> seen = memory.read(words);
    for (std::uint32_t i = 0; i < launches; ++i)
      require(seen[2 * i] == 0 && seen[2 * i + 1] == 32 * i,
              what + ": a value aligned to 128 arrives as it was, at such an address");
    memory.write(words, std::vector<std::uint32_t>(launches * 2, 99));
  };
  launch_all();
  require_seen("eager");
  stream.begin_capture();
  launch_all();
  const Graph graph = stream.end_capture();
  stream.launch(graph);
  require_seen("replayed");
}
TEST(LaunchAlignment, IsWhatTheKernelsValueNeeds) {
  expect_all_ok(run_ranks(RankKind::processes, "wide_kernels", 1));
}

IR_SCENARIO(gpu_kernels_on_a_cpu) {
  Context context(job, {.backend = BackendKind::host});
  Stream stream = context.make_stream();
  const auto require_refused = [](const std::string& word, const std::function<void()>& body) {
    const Error error = require_error(Errc::unsupported, {}, body);
    require(std::string(error.what()).find(word) != std::string::npos, error.what());
  };
  require_refused("163840 bytes", [&] { launch_large_blocks(context, stream, {}, nullptr); });
  require_refused("LargeBlocks", [&] { prepare_large_blocks(context); });
  require_refused("clusters of 2", [&] { launch_pairs(context, stream, {.blocks = 2}, nullptr); });
  stream.synchronize();
}
TEST(Launch, RefusesKernelsOfGpusOnCpus) {
  expect_all_ok(run_ranks(RankKind::processes, "gpu_kernels_on_a_cpu", 1));
}

/// Cases that need a GPU.
class GpuLaunch : public testing::Test {
 protected:
  void SetUp() override {
    for (const BackendInfo& backend : describe_backends())
      if (backend.kind == BackendKind::cuda && backend.available) return;
    GTEST_SKIP() << "no GPU";
  }
};

IR_SCENARIO(gpu_launch_without_nvcc) {
  Context context(job, {.backend = BackendKind::cuda});
  Stream stream = context.make_stream();
  auto words = context.allocate<std::uint32_t>(2);
  const auto launch = [&] {
    context.launch(stream, 1, CountBlocks{words.data(), words.data() + 1});
  };
  const Error error = require_error(Errc::unsupported, {}, launch);
  require(std::string(error.what()).find("nvcc") != std::string::npos &&
              std::string(error.what()).find("CountBlocks") != std::string::npos,
          error.what());
  require_error(Errc::unsupported, {}, [&] { context.prepare<CountBlocks>(); });
  launch_resident(context, stream, 1);
  stream.synchronize();
}
TEST_F(GpuLaunch, FromAFileThatNvccHasNotCompiledIsAClearError) {
  expect_all_ok(run_ranks(RankKind::processes, "gpu_launch_without_nvcc", 1));
}

IR_SCENARIO(too_many_resident_blocks) {
  Context context(job, {.backend = BackendKind::cuda});
  Stream stream = context.make_stream();
  const int fitting = context.world().max_blocks();
  launch_resident(context, stream, std::min(fitting, 8));
  const Error error =
      require_error(Errc::invalid_argument, {}, [&] { launch_resident(context, stream, 100'000); });
  for (const char* part : {"100000 blocks", "512 threads", "processors", "ranks", "leaves"})
    require(std::string(error.what()).find(part) != std::string::npos, error.what());
  stream.synchronize();
}
TEST_F(GpuLaunch, RefusesGridsThatCannotBeResidentWithTheNumbers) {
  for (const int ranks : {1, 4})
    expect_all_ok(run_ranks(RankKind::processes, "too_many_resident_blocks", ranks));
}

IR_SCENARIO(large_blocks) {
  constexpr std::uint32_t blocks = 200;
  Context context(job, {.backend = BackendKind::cuda});
  Stream stream = context.make_stream();
  Memory memory(context);
  auto sums = context.allocate<std::uint32_t>(blocks * 64);
  const auto require_sums = [&](const std::string& what) {
    stream.synchronize();
    const std::vector<std::uint32_t> seen = memory.read(sums);
    constexpr std::uint32_t count = large_block_bytes / 4;
    for (std::uint32_t i = 0; i < seen.size(); ++i)
      require(seen[i] == count * (count - 1) / 2 + count * (i / 64), what);
    memory.write(sums, std::vector<std::uint32_t>(blocks * 64, 0));
  };
  // Not prepared: the launch itself has to ask for the memory.
  launch_large_blocks(context, stream, {.blocks = blocks}, sums.data());
  require_sums("eager");
  prepare_large_blocks(context);
  stream.begin_capture();
  launch_large_blocks(context, stream, {.blocks = blocks}, sums.data());
  const Graph graph = stream.end_capture();
  stream.launch(graph);
  require_sums("replayed");
  // A processor holds one such block, whatever room its threads leave.
  const Error error = require_error(Errc::invalid_argument, {}, [&] {
    launch_large_blocks(context, stream, {.blocks = blocks, .resident = true}, sums.data());
  });
  require(std::string(error.what()).find("cannot all be resident") != std::string::npos,
          error.what());
  stream.synchronize();
}
TEST_F(GpuLaunch, GivesBlocksTheMemoryTheyAskFor) {
  expect_all_ok(run_ranks(RankKind::processes, "large_blocks", 1));
}

IR_SCENARIO(clusters) {
  constexpr std::uint32_t blocks = 300;
  Context context(job, {.backend = BackendKind::cuda});
  Stream stream = context.make_stream();
  Memory memory(context);
  auto seen = context.allocate<std::uint32_t>(blocks);
  try {
    launch_pairs(context, stream, {.blocks = blocks}, seen.data());
  } catch (const Error& error) {
    require(error.code() == Errc::unsupported &&
                std::string(error.what()).find("has no clusters") != std::string::npos,
            error.what());
    return;
  }
  stream.synchronize();
  const std::vector<std::uint32_t> words = memory.read(seen);
  for (std::uint32_t i = 0; i < blocks; ++i)
    require(words[i] == (i ^ 1), "a block reaches the other one of its cluster");
  const Error error = require_error(Errc::invalid_argument, {}, [&] {
    launch_pairs(context, stream, {.blocks = 3}, seen.data());
  });
  require(std::string(error.what()).find("a multiple of 2") != std::string::npos, error.what());
  launch_pairs(context, stream, {.blocks = 2, .resident = true}, seen.data());
  require_error(Errc::invalid_argument, {}, [&] {
    launch_pairs(context, stream, {.blocks = 100'000, .resident = true}, seen.data());
  });
  stream.synchronize();
}
TEST_F(GpuLaunch, RunsClusters) {
  expect_all_ok(run_ranks(RankKind::processes, "clusters", 1));
}

}  // namespace
}  // namespace iridium::test
