// Contexts, streams and captures that are not Iridium's, on a GPU.
#include <cuda.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include "backend/cuda/driver.h"
#include "backend/cuda/gpu_test_base.h"
#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

const ContextOptions on_gpu = {.backend = BackendKind::cuda, .heap_bytes = std::size_t{64} << 20};
/// Two of them do not fit the heap.
constexpr std::size_t large = std::size_t{24} << 20;

void require_success(cudaError_t status) {
  require(status == cudaSuccess, cudaGetErrorName(status));
}

class CudaForeignTest : public GpuTest {};

IR_SCENARIO(symmetric_in_a_foreign_capture) {
  Context context(job, on_gpu);
  // CUDA's own calls below are for the thread's device.
  require_success(cudaSetDevice(context.device()));
  constexpr std::size_t count = 1000;
  const auto in = context.allocate<std::int32_t>(count);
  const auto out = context.allocate<std::int32_t>(count);
  Memory memory(context);
  cudaStream_t native = nullptr;
  require_success(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking));
  StreamRef stream = context.borrow_stream(native);
  require_success(cudaStreamBeginCapture(native, cudaStreamCaptureModeGlobal));
  all_reduce(stream, context.world(), out, in, count);
  cudaGraph_t graph = nullptr;
  require_success(cudaStreamEndCapture(native, &graph));
  cudaGraphExec_t executable = nullptr;
  require_success(cudaGraphInstantiate(&executable, graph, 0));
  for (int round = 1; round <= 3; ++round) {
    memory.write(in, std::vector<std::int32_t>(count, round + job.rank));
    context.barrier();
    require_success(cudaGraphLaunch(executable, native));
    stream.synchronize();
    context.world().check();
    const std::int32_t sum = job.size * round + job.size * (job.size - 1) / 2;
    require(memory.read(out) == std::vector<std::int32_t>(count, sum), "the replay is right");
    context.barrier();
  }
  require_success(cudaGraphExecDestroy(executable));
  require_success(cudaGraphDestroy(graph));
}

TEST_F(CudaForeignTest, CapturesHoldCollectivesOfSymmetricArrays) {
  expect_all_ok(run_ranks(RankKind::processes, "symmetric_in_a_foreign_capture", 2));
}

/// A context that is nobody's primary one.
class OtherContext {
 public:
  OtherContext() {
    void* create = nullptr;
    void* destroy = nullptr;
    cudaDriverEntryPointQueryResult found = {};
    require_success(
        cudaGetDriverEntryPointByVersion("cuCtxCreate", &create, 11040, cudaEnableDefault, &found));
    require_success(cudaGetDriverEntryPointByVersion("cuCtxDestroy", &destroy, 11040,
                                                     cudaEnableDefault, &found));
    destroy_ = reinterpret_cast<CUresult (*)(CUcontext)>(destroy);
    require(reinterpret_cast<CUresult (*)(CUcontext*, void*, int, unsigned, CUdevice)>(create)(
                &context_, nullptr, 0, 0, 0) == CUDA_SUCCESS,
            "a context was made");
  }
  ~OtherContext() { destroy_(context_); }
  OtherContext(const OtherContext&) = delete;
  OtherContext& operator=(const OtherContext&) = delete;
  CUcontext get() const { return context_; }

 private:
  CUcontext context_ = nullptr;
  CUresult (*destroy_)(CUcontext) = nullptr;
};

CUcontext current_context() {
  CUcontext context = nullptr;
  driver().context_get(&context);
  return context;
}

IR_SCENARIO(another_context_is_current) {
  const OtherContext other;
  require(current_context() == other.get(), "making a context makes it current");
  cudaStream_t foreign = nullptr;
  require_success(cudaStreamCreateWithFlags(&foreign, cudaStreamNonBlocking));
  Context context(job, on_gpu);
  auto array = context.allocate<std::int32_t>(1000);
  Stream stream = context.make_stream();
  stream.fill(array.data(), 1, array.bytes());
  device_barrier(stream, context.world());
  stream.synchronize();
  require(Memory(context).read(array.data()) == 0x01010101, "work runs");
  require(current_context() == other.get(), "the user's context is current afterwards");
  const Error error = expect_error(Errc::invalid_argument, [&] { context.borrow_stream(foreign); });
  require(std::string(error.what()).find("another context of GPU 0") != std::string::npos,
          error.what());
  require(current_context() == other.get(), "the user's context is current after an error");
}

TEST_F(CudaForeignTest, AContextThatIsCurrentStaysTheUsers) {
  expect_all_ok(run_ranks(RankKind::processes, "another_context_is_current", 1));
}

TEST_F(CudaForeignTest, ThePerThreadStreamIsRefusedAndTheDefaultStreamIsOne) {
  Context context(on_gpu);
  const Error error =
      expect_error(Errc::invalid_argument, [&] { context.borrow_stream(cudaStreamPerThread); });
  EXPECT_NE(std::string(error.what()).find("every thread"), std::string::npos) << error.what();
  StreamRef by_null = context.borrow_stream(nullptr);
  StreamRef by_name = context.borrow_stream(cudaStreamLegacy);
  EXPECT_EQ(by_null.native_handle(), by_name.native_handle());
  auto array = context.allocate<std::int32_t>(10);
  by_name.fill(array.data(), 1, array.bytes());
  by_null.synchronize();
  EXPECT_EQ(Memory(context).read(array.data()), 0x01010101);
}

TEST_F(CudaForeignTest, StreamsOfTheHostBackendAreRefusedWithBothPlaces) {
  Context on_cpus(
      ContextOptions{.backend = BackendKind::host, .heap_bytes = std::size_t{64} << 20});
  Context context(on_gpu);
  Stream stream = on_cpus.make_stream();
  const Error error =
      expect_error(Errc::invalid_argument, [&] { device_barrier(stream, context.world()); });
  const std::string text = error.what();
  EXPECT_NE(text.find("the CPUs"), std::string::npos) << text;
  EXPECT_NE(text.find("GPU 0"), std::string::npos) << text;
}

TEST_F(CudaForeignTest, AGraphThatIsDroppedKeepsItsArraysUntilItsLaunchesAreDone) {
  Context context(on_gpu);
  Context other(on_gpu);
  Stream stream = other.make_stream();
  Stream recorder = context.make_stream();
  std::promise<void> gate;
  stream.call([&] { gate.get_future().wait(); });
  {
    auto array = context.allocate<std::byte>(large);
    recorder.begin_capture();
    recorder.fill(array.data(), 1, array.bytes());
    array.retain_on(recorder);
    const Graph graph = recorder.end_capture();
    stream.launch(graph);
  }
  stream.capture_status();
  expect_error(Errc::out_of_memory, [&] {
    auto first = context.allocate<std::byte>(large);
    auto second = context.allocate<std::byte>(large);
  });
  gate.set_value();
  stream.synchronize();
  // The stream lets go at its next call.
  stream.idle();
  auto first = context.allocate<std::byte>(large);
}

/// What queues work on memory of `context` on a stream of another one.
struct Scene {
  Context& context;
  Stream& recorder;
  StreamRef& stream;
};

/// Queues work on a stream that goes before the work is done, and allocates as much again as that
/// work uses, which has to wait for it.
void expect_allocation_waits_for_a_stream_that_goes(
    const std::function<void(const Scene&)>& queue_work,
    const std::function<void()>& when_it_has_gone = [] {}) {
  Context context(on_gpu);
  Context other(on_gpu);
  Stream recorder = context.make_stream();
  std::promise<void> gate;
  std::atomic<bool> passed = false;
  {
    Stream stream = other.make_stream();
    stream.call([&] {
      gate.get_future().wait();
      passed = true;
    });
    queue_work({context, recorder, stream});
  }
  when_it_has_gone();
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    gate.set_value();
  });
  context.allocate<std::byte>(large);
  EXPECT_TRUE(passed);
  opener.join();
}

/// A graph that alone keeps the array that it fills.
Graph record_fill(const Scene& scene) {
  const auto array = scene.context.allocate<std::byte>(large);
  scene.recorder.begin_capture();
  scene.recorder.fill(array.data(), 1, array.bytes());
  array.retain_on(scene.recorder);
  return scene.recorder.end_capture();
}

TEST_F(CudaForeignTest, AStreamThatGoesKeepsTheArraysItRetains) {
  expect_allocation_waits_for_a_stream_that_goes([](const Scene& scene) {
    const auto array = scene.context.allocate<std::byte>(large);
    scene.stream.fill(array.data(), 1, array.bytes());
    array.retain_on(scene.stream);
  });
}

TEST_F(CudaForeignTest, AStreamThatGoesKeepsTheArraysOfGraphsItLaunched) {
  expect_allocation_waits_for_a_stream_that_goes(
      [](const Scene& scene) { scene.stream.launch(record_fill(scene)); });
}

TEST_F(CudaForeignTest, AStreamThatGoesKeepsTheArraysOfGraphsThatItSawDropped) {
  expect_allocation_waits_for_a_stream_that_goes([](const Scene& scene) {
    scene.stream.launch(record_fill(scene));
    scene.stream.call([] {});
  });
}

TEST_F(CudaForeignTest, AStreamThatHasGoneKeepsTheArraysOfGraphsDroppedLater) {
  std::optional<Graph> graph;
  expect_allocation_waits_for_a_stream_that_goes(
      [&](const Scene& scene) {
        graph = record_fill(scene);
        scene.stream.launch(*graph);
      },
      [&] { graph.reset(); });
}

TEST_F(CudaForeignTest, TheCallersLastErrorStays) {
  Context context(on_gpu);
  Stream stream = context.make_stream();
  auto array = context.allocate<std::int32_t>(1000);
  std::promise<void> gate;
  stream.call([&] { gate.get_future().wait(); });
  array.retain_on(stream);
  EXPECT_EQ(cudaSetDevice(9999), cudaErrorInvalidDevice);
  EXPECT_FALSE(stream.idle());
  stream.fill(array.data(), 0, array.bytes());
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  gate.set_value();
  stream.synchronize();
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST_F(CudaForeignTest, CheckedModeRefusesMemoryThatKernelsDoNotReach) {
  ContextOptions options = on_gpu;
  options.checked = true;
  Context context(options);
  Stream stream = context.make_stream();
  std::vector<float> pageable(1000);
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocHost(&memory, 1000 * sizeof(float)), cudaSuccess);
  auto* const pinned = static_cast<float*>(memory);
  all_reduce(stream, context.world(), pinned, pinned, 1000);
  stream.synchronize();
  const Error error = expect_error(Errc::invalid_argument, [&] {
    all_reduce(stream, context.world(), pageable.data(), pageable.data(), 1000);
  });
  EXPECT_NE(std::string(error.what()).find("cudaHostAlloc"), std::string::npos) << error.what();
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

IR_SCENARIO(stream_goes_behind_a_sticky_error) {
  // Alone on the GPU: an error like this one ends all that share it under MPS.
  ::setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
  Context context(job, on_gpu);
  {
    Stream stream = context.make_stream();
    auto array = context.allocate<std::uint32_t>(1000);
    array.retain_on(stream);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): nobody's memory
    auto* const nowhere = reinterpret_cast<std::uint32_t*>(std::uintptr_t{1} << 46);
    require_success(
        launch_count_up(static_cast<cudaStream_t>(stream.native_handle()), nowhere, 0, 1000));
    expect_error(Errc::stream_failed, [&] { stream.synchronize(); });
    array = {};
  }
}

TEST_F(CudaForeignTest, AStreamWhoseGpuContextHasFailedGoesAtOnce) {
  expect_all_ok(run_ranks(RankKind::processes, "stream_goes_behind_a_sticky_error", 1));
}

}  // namespace
}  // namespace iridium::test
