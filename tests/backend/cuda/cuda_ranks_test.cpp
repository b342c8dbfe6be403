// Ranks that share one GPU: kernels write into each other's segments.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "backend/cuda/gpu_test_base.h"
#include "backend/cuda/room.h"
#include "iridium/all_reduce.h"
#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

void exchange_by_kernels(const Job& job, Placement placement) {
  Context context(
      job,
      {.backend = BackendKind::cuda, .placement = placement, .heap_bytes = std::size_t{64} << 20});
  // The kernels below are launched by CUDA's own call, which is for the thread's device.
  require(cudaSetDevice(context.device()) == cudaSuccess, "the rank's device is there");
  constexpr int count = 10000;
  auto inbox = context.allocate<std::uint32_t>(static_cast<std::size_t>(job.size) * count);
  auto sums = context.allocate<std::uint64_t>(static_cast<std::size_t>(job.size));
  Stream stream = context.make_stream();
  const auto native = static_cast<cudaStream_t>(stream.native_handle());
  for (std::uint32_t round = 0; round < 5; ++round) {
    for (int peer = 0; peer < job.size; ++peer)
      require(launch_count_up(native, inbox.at(peer) + job.rank * count,
                              round + 1000 * static_cast<std::uint32_t>(job.rank),
                              count) == cudaSuccess,
              "a kernel was launched");
    stream.synchronize();
    context.barrier();
    for (int peer = 0; peer < job.size; ++peer)
      require(
          launch_sum(native, inbox.data() + peer * count, count, sums.data() + peer) == cudaSuccess,
          "a kernel was launched");
    stream.synchronize();
    const auto seen = Memory(context).read(sums);
    for (std::uint64_t peer = 0; peer < seen.size(); ++peer)
      require(seen[peer] == (round + 1000 * peer) * count + std::uint64_t{count} * (count - 1) / 2,
              "what a peer's kernel wrote is there");
    context.barrier();
  }
}

IR_SCENARIO(kernels_exchange_in_device_memory) {
  exchange_by_kernels(job, Placement::device);
}
IR_SCENARIO(kernels_exchange_in_host_memory) {
  exchange_by_kernels(job, Placement::host);
}

class CudaRanksTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!gpu_is_here()) GTEST_SKIP() << "no GPU here";
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, CudaRanksTest, ::testing::Values(1, 2, 4, 8));

TEST_P(CudaRanksTest, KernelsWriteIntoPeersDeviceMemory) {
  expect_all_ok(run_ranks(RankKind::processes, "kernels_exchange_in_device_memory", GetParam()));
}

TEST_P(CudaRanksTest, KernelsWriteIntoPeersHostMemory) {
  expect_all_ok(run_ranks(RankKind::processes, "kernels_exchange_in_host_memory", GetParam()));
}

IR_SCENARIO(placements_differ) {
  require_error(Errc::mismatch, {0, 1}, [&] {
    Context context(job, {.backend = BackendKind::cuda,
                          .placement = job.rank == 0 ? Placement::device : Placement::host,
                          .heap_bytes = std::size_t{64} << 20});
  });
}

TEST_P(CudaRanksTest, PlacementsMustAgree) {
  if (GetParam() == 2) expect_all_ok(run_ranks(RankKind::processes, "placements_differ", 2));
}

void expect_grids_that_leave_room(const Job& job) {
  constexpr int lanes = 2;
  Context context(
      job,
      {.backend = BackendKind::cuda, .lanes_at_once = lanes, .heap_bytes = std::size_t{256} << 20});
  cudaDeviceProp properties = {};
  require(cudaGetDeviceProperties(&properties, context.device()) == cudaSuccess, "properties");
  SharedGpu gpu = {
      .processors = properties.multiProcessorCount, .major = properties.major, .ranks = 0};
  for (const cudaUUID_t& uuid : context.world().all_gather(properties.uuid))
    if (std::equal(std::begin(uuid.bytes), std::end(uuid.bytes), properties.uuid.bytes))
      ++gpu.ranks;
  const int per_processor = library_blocks_per_processor(properties.maxThreadsPerMultiProcessor);
  const auto blocks = [&](const TeamOptions& options) {
    return context.make_team(context.world().ranks(), options).max_blocks();
  };
  const auto expect = [](int found, int expected, const char* what) {
    expected = std::clamp(expected, 1, 64);
    require(found == expected, std::string(what) + ": " + std::to_string(found) +
                                   " blocks instead of " + std::to_string(expected));
  };
  const int all = resident_blocks(gpu, per_processor, lanes);
  const int alone = resident_blocks(gpu, per_processor, 1);
  expect(blocks({}), std::min(all, blocks_beside_compute(gpu, lanes)), "by default");
  expect(blocks({.beside_compute = false}), all, "where nothing computes");
  expect(blocks({.exclusive = true}), std::min(alone, blocks_beside_compute(gpu, 1)), "exclusive");
  const TeamOptions both = {.beside_compute = false, .exclusive = true};
  expect(blocks(both), alone, "both");
  // All of them run at the same time.
  Team team = context.make_team(context.world().ranks(), both);
  Stream stream = context.make_stream();
  auto values = context.allocate<int>(100'000);
  all_reduce(stream, team, values, values, values.size(), {.blocks = team.max_blocks()});
  stream.synchronize();
  team.check();
}

IR_SCENARIO(grids_leave_room) {
  expect_grids_that_leave_room(job);
}
// A smaller number of processors is what ranks under MPS then see.
IR_SCENARIO(grids_leave_room_in_a_share) {
  require(::setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50", 1) == 0, "a variable is set");
  expect_grids_that_leave_room(job);
}

TEST_P(CudaRanksTest, GridsLeaveRoomForKernelsThatCompute) {
  expect_all_ok(run_ranks(RankKind::processes, "grids_leave_room", GetParam()));
}

TEST_P(CudaRanksTest, GridsLeaveRoomInAShareOfTheProcessors) {
  expect_all_ok(run_ranks(RankKind::processes, "grids_leave_room_in_a_share", GetParam()));
}

}  // namespace
}  // namespace iridium::test
