#include "backend/host/host_stream.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <future>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "backend/stream_fixtures.h"
#include "iridium/errors.h"
#include "support/ranks.h"

namespace iridium {
namespace {

using test::expect_error;
using test::FakeAllocation;
using test::Gate;
using test::OwnedStream;

/// Ended by the stream's thread. Unlike `synchronize` it takes no failure off the stream.
void wait_until_reached(const Marker& marker) {
  while (!marker.reached()) std::this_thread::yield();
}

void fail(detail::StreamImpl& stream, const std::string& reason) {
  stream.call([reason] { throw std::runtime_error(reason); });
}

/// A stream whose work has failed and that nobody has told yet.
void fail_and_wait(detail::StreamImpl& stream) {
  fail(stream, "the reason");
  wait_until_reached(*stream.mark());
}

TEST(HostStream, RunsWorkInTheOrderOfTheCalls) {
  const OwnedStream stream;
  std::vector<int> seen;
  for (int i = 0; i < 1000; ++i) stream->call([&seen, i] { seen.push_back(i); });
  stream->synchronize();
  std::vector<int> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(seen, expected);
}

TEST(HostStream, CopiesAndFills) {
  const OwnedStream stream;
  std::array<unsigned char, 16> from = {};
  std::array<unsigned char, 16> to = {};
  stream->fill(from.data(), 7, 8);
  stream->fill(from.data() + 8, 9, 8);
  stream->copy(to.data() + 2, from.data() + 6, 4);
  stream->synchronize();
  EXPECT_EQ(to, (std::array<unsigned char, 16>{0, 0, 7, 7, 9, 9}));
}

TEST(HostStream, RefusesKernelsThatHaveNoCodeForCpus) {
  const OwnedStream stream;
  const detail::KernelEntry entry = {.name = "AKernel",
                                     .bytes = 1,
                                     .threads = 32,
                                     .block_bytes = 4096,
                                     .cluster = 1,
                                     .run_on_host = nullptr,
                                     .launch_on_cuda = nullptr,
                                     .load_on_cuda = nullptr,
                                     .fit_on_cuda = nullptr};
  const Error error = expect_error(Errc::unsupported, [&] { stream->launch_kernel(entry, "", 1); });
  EXPECT_NE(std::string(error.what()).find("AKernel runs on GPUs only: it has 4096 bytes"),
            std::string::npos)
      << error.what();
  stream->synchronize();
}

TEST(HostStream, ReturnsBeforeTheWorkIsDone) {
  const OwnedStream stream;
  Gate gate;
  std::array<unsigned char, 4> memory = {};
  EXPECT_TRUE(stream->idle());
  stream->call(gate.pass());
  stream->fill(memory.data(), 1, memory.size());
  EXPECT_FALSE(stream->idle());
  EXPECT_EQ(memory[0], 0);
  gate.open();
  stream->synchronize();
  EXPECT_TRUE(stream->idle());
  EXPECT_EQ(memory[3], 1);
}

TEST(HostStream, DoesNotWaitForOtherStreams) {
  Gate gate;
  const OwnedStream stuck;
  const OwnedStream stream;
  bool ran = false;
  stuck->call(gate.pass());
  stream->call([&ran] { ran = true; });
  stream->synchronize();
  EXPECT_TRUE(ran);
  EXPECT_FALSE(stuck->idle());
}

TEST(HostStream, SynchronizeWithoutWorkReturns) {
  const OwnedStream stream;
  stream->synchronize();
  EXPECT_TRUE(stream->idle());
}

TEST(HostStream, LeavesSignalsToTheProgram) {
  const OwnedStream stream;
  bool blocked = false;
  stream->call([&blocked] {
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked = ::sigismember(&mask, SIGINT) == 1 && ::sigismember(&mask, SIGTERM) == 1;
  });
  stream->synchronize();
  EXPECT_TRUE(blocked);
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(::sigismember(&mask, SIGINT), 0) << "the calling thread keeps its own mask";
}

TEST(HostStreamFailures, SkipWhatWasQueuedBehind) {
  const OwnedStream stream;
  Gate gate;
  std::vector<int> ran;
  stream->call(gate.pass());
  stream->call([&ran] { ran.push_back(1); });
  fail(*stream, "the reason");
  stream->call([&ran] { ran.push_back(2); });
  gate.open();
  const Error error = expect_error(Errc::stream_failed, [&] { stream->synchronize(); });
  EXPECT_NE(std::string(error.what()).find("the reason"), std::string::npos);
  EXPECT_EQ(ran, std::vector<int>{1});
}

TEST(HostStreamFailures, SkipEverythingAcceptedBeforeTheyAreTold) {
  const OwnedStream stream;
  std::atomic<int> ran = 0;
  fail(*stream, "the reason");
  expect_error(Errc::stream_failed, [&] {
    while (true) stream->call([&ran] { ++ran; });
  });
  stream->synchronize();
  EXPECT_EQ(ran, 0);
}

TEST(HostStreamFailures, AreToldOnceAndThenTheStreamWorksAgain) {
  const OwnedStream stream;
  for (int round = 0; round < 3; ++round) {
    fail_and_wait(*stream);
    expect_error(Errc::stream_failed, [&] { stream->call([] {}); });
    bool ran = false;
    stream->call([&ran] { ran = true; });
    stream->synchronize();
    EXPECT_TRUE(ran);
    EXPECT_TRUE(stream->idle());
  }
}

TEST(HostStreamFailures, AreToldByWhateverCallComesNext) {
  std::array<unsigned char, 2> memory = {};
  const OwnedStream recorder;
  recorder->begin_capture();
  const auto graph = recorder->end_capture();
  const std::vector<std::function<void(detail::StreamImpl&)>> calls = {
      [&](auto& stream) { stream.copy(memory.data(), memory.data() + 1, 1); },
      [&](auto& stream) { stream.fill(memory.data(), 1, 1); },
      [](auto& stream) { stream.call([] {}); },
      [](auto& stream) { stream.retain(std::make_shared<FakeAllocation>()); },
      [](auto& stream) { stream.synchronize(); },
      [](auto& stream) { stream.idle(); },
      [](auto& stream) { stream.begin_capture(); },
      [&](auto& stream) { stream.launch(graph); },
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    SCOPED_TRACE(i);
    const OwnedStream stream;
    fail_and_wait(*stream);
    expect_error(Errc::stream_failed, [&] { calls[i](*stream); });
    EXPECT_EQ(stream->capture_status(), CaptureStatus::none);
    stream->synchronize();
  }
  EXPECT_EQ(memory[0], 0) << "a call that throws submits nothing";
}

TEST(HostStreamFailures, OfUnknownTypeAreFailuresToo) {
  const OwnedStream stream;
  stream->call([] { throw 42; });  // NOLINT(misc-throw-by-value-catch-by-reference)
  expect_error(Errc::stream_failed, [&] { stream->synchronize(); });
}

TEST(HostStreamFailures, InAGraphSkipTheRestOfIt) {
  const OwnedStream stream;
  std::vector<int> ran;
  stream->begin_capture();
  stream->call([&ran] { ran.push_back(1); });
  fail(*stream, "inside the graph");
  stream->call([&ran] { ran.push_back(2); });
  const auto graph = stream->end_capture();
  for (int round = 0; round < 2; ++round) {
    stream->launch(graph);
    const Error error = expect_error(Errc::stream_failed, [&] { stream->synchronize(); });
    EXPECT_NE(std::string(error.what()).find("inside the graph"), std::string::npos);
  }
  EXPECT_EQ(ran, (std::vector<int>{1, 1}));
}

TEST(HostStreamEnd, LetsQueuedWorkRun) {
  Gate gate;
  std::promise<void> last;
  {
    const OwnedStream stream;
    stream->call(gate.pass());
    for (int i = 0; i < 100; ++i) stream->call([] {});
    stream->call([&last] { last.set_value(); });
  }
  auto ran = last.get_future();
  EXPECT_EQ(ran.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  gate.open();
  ran.wait();
}

TEST(HostStreamEnd, RefusesNewWork) {
  const auto stream = make_host_stream();
  stream->call([] {});
  stream->close();
  expect_error(Errc::invalid_argument, [&] { stream->call([] {}); });
  expect_error(Errc::invalid_argument, [&] { stream->fill(nullptr, 0, 0); });
  expect_error(Errc::invalid_argument, [&] { stream->retain(std::make_shared<FakeAllocation>()); });
  stream->synchronize();
  EXPECT_TRUE(stream->idle());
}

TEST(HostStreamEnd, DropsACapture) {
  const auto stream = make_host_stream();
  stream->begin_capture();
  stream->close();
  EXPECT_EQ(stream->capture_status(), CaptureStatus::none);
  expect_error(Errc::invalid_argument, [&] { stream->end_capture(); });
}

TEST(HostStreamEnd, MayComeFromItsOwnWork) {
  std::promise<void> done;
  auto stream = make_host_stream();
  stream->call([&done, held = stream]() mutable {
    held->close();
    held.reset();
    done.set_value();
  });
  stream.reset();
  done.get_future().wait();
}

TEST(HostStreamHandles, NameTheStream) {
  const OwnedStream first;
  const OwnedStream second;
  EXPECT_NE(first->native_handle(), second->native_handle());
  EXPECT_EQ(find_host_stream(first->native_handle()), first.shared());
  EXPECT_EQ(find_host_stream(second->native_handle()), second.shared());
}

TEST(HostStreamHandles, ThatAreUnknownAreRefused) {
  int something = 0;
  expect_error(Errc::invalid_argument, [&] { find_host_stream(&something); });
  expect_error(Errc::invalid_argument, [] { find_host_stream(nullptr); });
}

TEST(HostStreamHandles, OfDestroyedStreamsAreRefused) {
  auto stream = make_host_stream();
  void* handle = stream->native_handle();
  stream->close();
  stream.reset();
  expect_error(Errc::invalid_argument, [&] { find_host_stream(handle); });
}

TEST(HostStreamMarkers, AreReachedWithTheWorkBeforeThem) {
  const OwnedStream stream;
  EXPECT_TRUE(stream->mark()->reached()) << "there is no work";
  Gate first;
  Gate second;
  stream->call(first.pass());
  const auto marker = stream->mark();
  stream->call(second.pass());
  const auto later = stream->mark();
  EXPECT_FALSE(marker->reached());
  first.open();
  wait_until_reached(*marker);
  EXPECT_FALSE(later->reached());
  second.open();
  stream->synchronize();
  EXPECT_TRUE(later->reached());
}

TEST(HostStreamMarkers, AreReachedByWorkThatFailsOrIsSkipped) {
  const OwnedStream stream;
  Gate gate;
  stream->call(gate.pass());
  fail(*stream, "the reason");
  stream->call([] {});
  gate.open();
  wait_until_reached(*stream->mark());
  expect_error(Errc::stream_failed, [&] { stream->synchronize(); });
}

TEST(HostStreamMarkers, OutliveTheStream) {
  auto stream = make_host_stream();
  Gate gate;
  stream->call(gate.pass());
  const auto marker = stream->mark();
  stream->close();
  stream.reset();
  EXPECT_FALSE(marker->reached()) << "the work still runs";
  gate.open();
  wait_until_reached(*marker);
}

TEST(HostStreamThreads, MaySubmitAtTheSameTime) {
  const OwnedStream stream;
  constexpr int calls = 500;
  int total = 0;
  std::array<int, 4> last = {-1, -1, -1, -1};
  std::atomic<bool> in_order = true;
  std::vector<std::thread> threads;
  for (int& own : last)
    threads.emplace_back([&] {
      for (int i = 0; i < calls; ++i)
        stream->call([&, i] {
          ++total;
          if (own != i - 1) in_order = false;
          own = i;
        });
      stream->synchronize();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(total, calls * static_cast<int>(last.size()));
  EXPECT_TRUE(in_order) << "one thread's calls run in its order";
}

TEST(HostStreamThreads, MayLaunchOneGraphOnSeveralStreams) {
  const OwnedStream recorder;
  std::atomic<int> runs = 0;
  recorder->begin_capture();
  recorder->call([&runs] { ++runs; });
  const auto graph = recorder->end_capture();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const OwnedStream stream;
      for (int launch = 0; launch < 100; ++launch) stream->launch(graph);
      stream->synchronize();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(runs, 400);
}

}  // namespace
}  // namespace iridium
