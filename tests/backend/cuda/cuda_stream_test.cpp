// Streams and graphs on a GPU.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

#include "backend/cuda/cuda_stream.h"
#include "backend/cuda/gpu_test_base.h"
#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

class CudaStreamTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped())
      context_.emplace(
          ContextOptions{.backend = BackendKind::cuda, .heap_bytes = std::size_t{64} << 20});
  }

  std::optional<Context> context_;
};

TEST_F(CudaStreamTest, RunsInOrderBehindTheProgram) {
  Stream stream = context_->make_stream();
  std::promise<void> gate;
  std::vector<int> order;
  stream.call([&] {
    gate.get_future().wait();
    order.push_back(1);
  });
  stream.call([&] { order.push_back(2); });
  EXPECT_FALSE(stream.idle());
  gate.set_value();
  stream.synchronize();
  EXPECT_TRUE(stream.idle());
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(CudaStreamTest, AMarkOnAnIdleStreamIsReachedAtOnce) {
  const auto stream = make_cuda_stream(context_->device());
  for (int round = 0; round < 100; ++round) {
    stream->call([] {});
    stream->synchronize();
    EXPECT_TRUE(stream->mark()->reached()) << "there is no work";
  }
}

TEST_F(CudaStreamTest, CapturesCopiesFillsKernelsAndCalls) {
  Stream stream = context_->make_stream();
  Memory memory(*context_);
  auto from = context_->allocate<std::uint32_t>(100);
  auto to = context_->allocate<std::uint32_t>(100);
  auto calls = std::make_shared<int>(0);
  stream.begin_capture();
  EXPECT_EQ(stream.capture_status(), CaptureStatus::active);
  EXPECT_EQ(
      launch_count_up(static_cast<cudaStream_t>(stream.native_handle()), from.data() + 1, 50, 98),
      cudaSuccess);
  stream.copy(to.data(), from.data(), from.bytes());
  stream.fill(from.data(), 0, 4);
  stream.call([calls] { ++*calls; });
  {
    const Graph graph = stream.end_capture();
    EXPECT_EQ(stream.capture_status(), CaptureStatus::none);
    EXPECT_EQ(graph.node_count(), 4u);
    EXPECT_EQ(*calls, 0);
    for (std::uint32_t round = 1; round <= 3; ++round) {
      memory.write(from.data(), round);
      stream.launch(graph);
      stream.synchronize();
      EXPECT_EQ(memory.read(to.data()), round);
      EXPECT_EQ(memory.read(to.data() + 98), 50u + 97);
      EXPECT_EQ(memory.read(from.data()), 0u);
      EXPECT_EQ(*calls, static_cast<int>(round));
    }
  }
  // The graph owned the function.
  for (int i = 0; i < 1000 && calls.use_count() > 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(calls.use_count(), 1);
}

TEST_F(CudaStreamTest, AGraphCanBePartOfACapture) {
  Stream stream = context_->make_stream();
  auto array = context_->allocate<std::uint32_t>(10);
  stream.begin_capture();
  EXPECT_EQ(launch_count_up(static_cast<cudaStream_t>(stream.native_handle()), array.data(), 1, 10),
            cudaSuccess);
  const Graph inner = stream.end_capture();
  stream.begin_capture();
  stream.fill(array.data(), 255, array.bytes());
  stream.launch(inner);
  stream.fill(array.data(), 0, 4);
  const Graph outer = stream.end_capture();
  stream.launch(outer);
  stream.synchronize();
  EXPECT_EQ(Memory(*context_).read(array),
            (std::vector<std::uint32_t>{0, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST_F(CudaStreamTest, ABrokenCaptureIsReportedAndTheStreamWorksAgain) {
  Stream stream = context_->make_stream();
  auto array = context_->allocate<int>(10);
  static_cast<void>(cudaGetLastError());
  stream.begin_capture();
  // Behind Iridium's back: waiting for a stream that is capturing breaks the capture.
  EXPECT_NE(cudaStreamSynchronize(static_cast<cudaStream_t>(stream.native_handle())), cudaSuccess);
  EXPECT_EQ(stream.capture_status(), CaptureStatus::invalidated);
  const Error error = expect_error(Errc::capture_unsupported, [&] { stream.end_capture(); });
  EXPECT_NE(std::string(error.what()).find("cudaErrorStreamCaptureUnsupported"), std::string::npos)
      << error.what();
  stream.fill(array.data(), 0, array.bytes());
  stream.synchronize();
  EXPECT_EQ(stream.capture_status(), CaptureStatus::none);
}

TEST_F(CudaStreamTest, AFunctionThatThrowsShowsAtTheNextCall) {
  Stream stream = context_->make_stream();
  stream.call([] { throw std::runtime_error("out of ink"); });
  const Error error = expect_error(Errc::stream_failed, [&] { stream.synchronize(); });
  EXPECT_NE(std::string(error.what()).find("out of ink"), std::string::npos) << error.what();
  stream.synchronize();
}

TEST_F(CudaStreamTest, AFunctionThatThrowsInAGraphShowsOnTheStreamItWasLaunchedOn) {
  Stream recorder = context_->make_stream();
  Stream player = context_->make_stream();
  recorder.begin_capture();
  recorder.call([] { throw std::runtime_error("out of ink"); });
  const Graph inner = recorder.end_capture();
  recorder.begin_capture();
  recorder.launch(inner);
  const Graph outer = recorder.end_capture();
  for (const Graph& graph : {inner, outer}) {
    player.launch(graph);
    expect_error(Errc::stream_failed, [&] { player.synchronize(); });
    player.synchronize();
    recorder.synchronize();
  }
}

TEST_F(CudaStreamTest, ACaptureIsEndedByTheThreadThatBeganIt) {
  Stream stream = context_->make_stream();
  stream.begin_capture();
  std::thread([&] { expect_error(Errc::invalid_argument, [&] { stream.end_capture(); }); }).join();
  EXPECT_EQ(stream.capture_status(), CaptureStatus::active);
  EXPECT_EQ(stream.end_capture().node_count(), 0u);
}

TEST_F(CudaStreamTest, TheLastReferenceToAnArrayMayBeTheStreams) {
  const std::size_t most = std::size_t{32} << 20;  // two of them do not fit
  Stream stream = context_->make_stream();
  for (int i = 0; i < 3; ++i) {
    auto array = context_->allocate<std::byte>(most);
    std::byte* data = array.data();
    stream.fill(data, 1, most);
    array.retain_on(stream);
    array = {};
    EXPECT_TRUE(context_->is_symmetric(data, most)) << "held until the work is done";
    stream.synchronize();
    EXPECT_FALSE(context_->is_symmetric(data, most));
  }
  // And a function's, which CUDA destroys on a thread of its own.
  auto array = std::make_shared<SymmetricArray<std::byte>>(context_->allocate<std::byte>(most));
  stream.call([array] {});
  array.reset();
  stream.synchronize();
  context_->allocate<std::byte>(most);
}

TEST_F(CudaStreamTest, BeginningTwiceAndEndingWithoutAreRefused) {
  Stream stream = context_->make_stream();
  expect_error(Errc::invalid_argument, [&] { stream.end_capture(); });
  stream.begin_capture();
  expect_error(Errc::invalid_argument, [&] { stream.begin_capture(); });
  EXPECT_EQ(stream.end_capture().node_count(), 0u);
}

TEST_F(CudaStreamTest, BorrowedStreamsCanCaptureToo) {
  cudaStream_t native = nullptr;
  ASSERT_EQ(cudaStreamCreate(&native), cudaSuccess);
  {
    auto array = context_->allocate<std::uint32_t>(10);
    StreamRef stream = context_->borrow_stream(native);
    EXPECT_EQ(stream.native_handle(), native);
    stream.begin_capture();
    EXPECT_EQ(launch_count_up(native, array.data(), 3, 10), cudaSuccess);
    expect_error(Errc::capture_unsupported, [&] { context_->barrier(); });
    const Graph graph = stream.end_capture();
    stream.launch(graph);
    stream.synchronize();
    EXPECT_EQ(Memory(*context_).read(array.data() + 9), 12u);
  }
  EXPECT_EQ(cudaStreamDestroy(native), cudaSuccess);
}

TEST_F(CudaStreamTest, AForeignCaptureOnABorrowedStreamIsKnown) {
  cudaStream_t native = nullptr;
  ASSERT_EQ(cudaStreamCreate(&native), cudaSuccess);
  {
    auto array = context_->allocate<std::uint32_t>(10);
    StreamRef stream = context_->borrow_stream(native);
    ASSERT_EQ(cudaStreamBeginCapture(native, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(stream.capture_status(), CaptureStatus::active);
    expect_error(Errc::capture_unsupported, [&] { context_->allocate<int>(1); });
    expect_error(Errc::capture_unsupported, [&] { stream.synchronize(); });
    expect_error(Errc::unsupported, [&] { array.retain_on(stream); });
    stream.fill(array.data(), 1, 4);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(native, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  EXPECT_EQ(cudaStreamDestroy(native), cudaSuccess);
}

TEST_F(CudaStreamTest, DestructionWithQueuedWorkDoesNotWait) {
  std::promise<void> gate;
  auto passed = std::make_shared<std::promise<void>>();
  {
    Stream stream = context_->make_stream();
    stream.call([&gate, passed] {
      gate.get_future().wait();
      passed->set_value();
    });
  }
  gate.set_value();
  passed->get_future().wait();
}

}  // namespace
}  // namespace iridium::test
