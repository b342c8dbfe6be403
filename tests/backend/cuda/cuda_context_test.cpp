// A rank on a GPU.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "backend/cuda/gpu_test_base.h"
#include "support/memory.h"
#include "support/ranks.h"
#include "support/resources.h"

namespace iridium::test {
namespace {

const ContextOptions on_gpu = {.backend = BackendKind::cuda, .heap_bytes = std::size_t{64} << 20};

ContextOptions with_placement(Placement placement) {
  ContextOptions options = on_gpu;
  options.placement = placement;
  return options;
}

class CudaContextTest : public GpuTest {};

TEST_F(CudaContextTest, KernelsWorkOnArraysInBothPlacements) {
  for (const Placement placement : {Placement::device, Placement::host}) {
    Context context(with_placement(placement));
    EXPECT_EQ(context.placement(), placement);
    Stream stream = context.make_stream();
    auto numbers = context.allocate<std::uint32_t>(1000);
    auto sum = context.allocate<std::uint64_t>(1);
    const auto native = static_cast<cudaStream_t>(stream.native_handle());
    EXPECT_EQ(launch_count_up(native, numbers.data(), 5, 1000), cudaSuccess);
    EXPECT_EQ(launch_sum(native, numbers.at(0), 1000, sum.data()), cudaSuccess);
    stream.synchronize();
    EXPECT_EQ(Memory(context).read(sum.data()), 5u * 1000 + 999u * 1000 / 2);
  }
}

TEST_F(CudaContextTest, HostPlacementIsOpenToTheCpu) {
  Context context(with_placement(Placement::host));
  Stream stream = context.make_stream();
  auto numbers = context.allocate<std::uint32_t>(1000);
  auto sum = context.allocate<std::uint64_t>(1);
  for (std::uint32_t i = 0; i < 1000; ++i) numbers[i] = 2 * i;
  EXPECT_EQ(launch_sum(static_cast<cudaStream_t>(stream.native_handle()), numbers.data(), 1000,
                       sum.data()),
            cudaSuccess);
  stream.synchronize();
  EXPECT_EQ(sum[0], 999u * 1000);
}

TEST_F(CudaContextTest, AHeapLargerThanTheFreeMemoryIsRefusedWithBothFigures) {
  ContextOptions options = on_gpu;
  options.heap_bytes = std::size_t{1} << 42;
  const Error error = expect_error(Errc::out_of_memory, [&] { Context context(options); });
  const std::string text = error.what();
  EXPECT_NE(text.find("4398046511104 bytes (4 TiB)"), std::string::npos) << text;
  EXPECT_NE(text.find("free memory of GPU 0"), std::string::npos) << text;
  options.placement = Placement::host;
  const Error in_host_memory = expect_error(Errc::out_of_memory, [&] { Context context(options); });
  EXPECT_NE(std::string(in_host_memory.what()).find("4398046511104 bytes (4 TiB)"),
            std::string::npos);
}

TEST_F(CudaContextTest, ADeviceThatDoesNotExistIsRefused) {
  ContextOptions options = on_gpu;
  for (const int device : {99, -1}) {
    options.device = device;
    const Error error = expect_error(Errc::invalid_argument, [&] { Context context(options); });
    EXPECT_NE(std::string(error.what()).find("GPU " + std::to_string(device) + " does not exist"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(CudaContextTest, ThreadsAsRanksAreRefusedWithTheReason) {
  const Error error = expect_error(Errc::unsupported, [] { spawn(2, on_gpu, [](Context&) {}); });
  EXPECT_NE(std::string(error.what()).find("threads of one process"), std::string::npos)
      << error.what();
  EXPECT_EQ(error.ranks(), (std::vector<int>{0, 1}));
}

std::size_t free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  return free;
}

TEST_F(CudaContextTest, FiftyContextsInARowLeakNothing) {
  const auto one_context = [](int index) {
    Context context(with_placement(index % 2 == 0 ? Placement::device : Placement::host));
    auto array = context.allocate<int>(1000);
    Memory(context).write(array.data(), index);
    Stream stream = context.make_stream();
    stream.fill(array.data(), 1, array.bytes());
    stream.synchronize();
  };
  for (int i = 0; i < 3; ++i) one_context(i);
  const std::size_t free_before = free_memory();
  const std::size_t descriptors_before = open_descriptors();
  const std::size_t mappings_before = mappings();
  for (int i = 0; i < 50; ++i) one_context(i);
  EXPECT_EQ(open_descriptors(), descriptors_before);
  EXPECT_LE(mappings(), mappings_before + 2);
  // Other processes may use the GPU; fifty leaked segments would be 3 GiB.
  EXPECT_LT(free_before, free_memory() + (std::size_t{256} << 20));
}

TEST_F(CudaContextTest, MemoryIsUsedAgainOnlyAfterTheWorkOnItIsDone) {
  Context context(on_gpu);
  const std::size_t most = std::size_t{32} << 20;  // two of them do not fit
  Stream stream = context.make_stream();
  std::promise<void> gate;
  std::atomic<bool> passed = false;
  auto array = context.allocate<std::byte>(most);
  stream.call([&] {
    gate.get_future().wait();
    passed = true;
  });
  stream.fill(array.data(), 1, most);
  array = {};
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    gate.set_value();
  });
  context.allocate<std::byte>(most);
  EXPECT_TRUE(passed);
  opener.join();
}

TEST_F(CudaContextTest, WorkOfABorrowedStreamCountsAfterItsLastReference) {
  Context context(on_gpu);
  const std::size_t most = std::size_t{32} << 20;  // two of them do not fit
  cudaStream_t native = nullptr;
  ASSERT_EQ(cudaStreamCreate(&native), cudaSuccess);
  std::promise<void> gate;
  std::atomic<bool> passed = false;
  auto array = context.allocate<std::byte>(most);
  {
    StreamRef borrowed = context.borrow_stream(native);
    borrowed.call([&] {
      gate.get_future().wait();
      passed = true;
    });
  }
  array = {};
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    gate.set_value();
  });
  context.allocate<std::byte>(most);
  EXPECT_TRUE(passed);
  opener.join();
  EXPECT_EQ(cudaStreamDestroy(native), cudaSuccess);
}

/// A capture in the strictest mode, by somebody who has not heard of Iridium.
TEST_F(CudaContextTest, AForeignCaptureOnAnotherThreadIsUnharmed) {
  Context context(on_gpu);
  auto array = context.allocate<std::uint32_t>(1000);
  cudaStream_t native = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(native, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_EQ(launch_count_up(native, array.data(), 0, 1000), cudaSuccess);
  std::thread other([&] {
    auto more = context.allocate<std::byte>(std::size_t{1} << 20);
    more = {};
    context.allocate<std::byte>(std::size_t{2} << 20);
    context.barrier();
    Team team = context.make_team({0});
    team.barrier();
    Stream stream = context.make_stream();
    auto small = context.allocate<int>(10);
    stream.fill(small.data(), 0, small.bytes());
    stream.synchronize();
    EXPECT_TRUE(stream.idle());
  });
  other.join();
  Context while_capturing(
      ContextOptions{.backend = BackendKind::cuda, .heap_bytes = std::size_t{32} << 20});
  ASSERT_EQ(launch_count_up(native, array.data(), 7, 1000), cudaSuccess);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(native, &graph), cudaSuccess);
  std::size_t nodes = 0;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 2u);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(native), cudaSuccess);
}

}  // namespace
}  // namespace iridium::test
