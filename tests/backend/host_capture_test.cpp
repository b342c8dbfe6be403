#include <gtest/gtest.h>

#include <array>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backend/host/host_stream.h"
#include "backend/stream_fixtures.h"
#include "iridium/errors.h"
#include "support/ranks.h"

namespace iridium {
namespace {

using test::expect_error;
using test::FakeAllocation;
using test::Gate;
using test::OwnedStream;

class ForeignGraph final : public detail::GraphImpl {
 public:
  std::size_t node_count() const override { return 0; }
};

TEST(HostCapture, RecordsAndDoesNotRun) {
  const OwnedStream stream;
  int runs = 0;
  std::array<unsigned char, 4> memory = {};
  stream->begin_capture();
  EXPECT_EQ(stream->capture_status(), CaptureStatus::active);
  stream->call([&runs] { ++runs; });
  stream->fill(memory.data(), 5, 2);
  stream->copy(memory.data() + 2, memory.data(), 2);
  const auto graph = stream->end_capture();
  EXPECT_EQ(stream->capture_status(), CaptureStatus::none);
  EXPECT_EQ(graph->node_count(), 3u);
  stream->synchronize();
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(memory[0], 0);
  stream->launch(graph);
  stream->synchronize();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(memory, (std::array<unsigned char, 4>{5, 5, 5, 5}));
}

TEST(HostCapture, IsReplayedAnyNumberOfTimesBetweenEagerWork) {
  const OwnedStream stream;
  std::vector<char> seen;
  stream->begin_capture();
  for (const char letter : {'a', 'b', 'c'})
    stream->call([&seen, letter] { seen.push_back(letter); });
  const auto graph = stream->end_capture();
  std::vector<char> expected;
  for (int i = 0; i < 200; ++i) {
    stream->launch(graph);
    stream->call([&seen] { seen.push_back('-'); });
    expected.insert(expected.end(), {'a', 'b', 'c', '-'});
  }
  stream->synchronize();
  EXPECT_EQ(seen, expected);
}

TEST(HostCapture, RunsOnOtherStreams) {
  const OwnedStream recorder;
  const OwnedStream player;
  int runs = 0;
  recorder->begin_capture();
  recorder->call([&runs] { ++runs; });
  const auto graph = recorder->end_capture();
  player->launch(graph);
  player->synchronize();
  EXPECT_EQ(runs, 1);
}

TEST(HostCapture, RecordsLaunchesOfOtherGraphs) {
  const OwnedStream stream;
  std::vector<int> seen;
  stream->begin_capture();
  stream->call([&seen] { seen.push_back(2); });
  stream->call([&seen] { seen.push_back(3); });
  auto inner = stream->end_capture();
  stream->begin_capture();
  stream->call([&seen] { seen.push_back(1); });
  stream->launch(inner);
  stream->launch(inner);
  stream->call([&seen] { seen.push_back(4); });
  const auto outer = stream->end_capture();
  inner.reset();
  EXPECT_EQ(outer->node_count(), 6u);
  stream->synchronize();
  EXPECT_TRUE(seen.empty());
  stream->launch(outer);
  stream->synchronize();
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 3, 2, 3, 4}));
}

TEST(HostCapture, OfNothingIsAGraphThatDoesNothing) {
  const OwnedStream stream;
  stream->begin_capture();
  const auto graph = stream->end_capture();
  EXPECT_EQ(graph->node_count(), 0u);
  stream->launch(graph);
  stream->synchronize();
}

TEST(HostCapture, CannotBeginTwice) {
  const OwnedStream stream;
  stream->begin_capture();
  stream->call([] {});
  expect_error(Errc::invalid_argument, [&] { stream->begin_capture(); });
  EXPECT_EQ(stream->capture_status(), CaptureStatus::active);
  EXPECT_EQ(stream->end_capture()->node_count(), 1u) << "the first capture went on";
}

TEST(HostCapture, CannotEndWithoutABegin) {
  const OwnedStream stream;
  expect_error(Errc::invalid_argument, [&] { stream->end_capture(); });
  stream->begin_capture();
  stream->end_capture();
  expect_error(Errc::invalid_argument, [&] { stream->end_capture(); });
}

TEST(HostCapture, IsEndedByTheThreadThatBeganIt) {
  const OwnedStream stream;
  stream->begin_capture();
  stream->call([] {});
  std::thread([&] {
    const Error error = expect_error(Errc::invalid_argument, [&] { stream->end_capture(); });
    EXPECT_NE(std::string(error.what()).find("begun by another thread"), std::string::npos)
        << error.what();
  }).join();
  EXPECT_EQ(stream->capture_status(), CaptureStatus::active);
  stream->call([] {});
  EXPECT_EQ(stream->end_capture()->node_count(), 2u) << "the capture went on";

  // Whoever begins the next one ends that.
  std::thread([&] {
    stream->begin_capture();
    EXPECT_EQ(stream->end_capture()->node_count(), 0u);
  }).join();
}

TEST(HostCapture, OutlivesCallsItCannotHold) {
  const OwnedStream stream;
  stream->begin_capture();
  stream->call([] {});
  expect_error(Errc::capture_unsupported, [&] { stream->synchronize(); });
  expect_error(Errc::capture_unsupported, [&] { stream->idle(); });
  EXPECT_EQ(stream->capture_status(), CaptureStatus::active);
  stream->call([] {});
  EXPECT_EQ(stream->end_capture()->node_count(), 2u);
  stream->synchronize();
}

TEST(HostCapture, LetsEarlierWorkGoOn) {
  const OwnedStream stream;
  Gate gate;
  std::promise<void> ran;
  stream->call(gate.pass());
  stream->call([&ran] { ran.set_value(); });
  stream->begin_capture();
  gate.open();
  ran.get_future().wait();
  EXPECT_EQ(stream->end_capture()->node_count(), 0u);
}

TEST(HostCapture, RecordsWhatEveryThreadCalls) {
  const OwnedStream stream;
  stream->begin_capture();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int call = 0; call < 100; ++call) stream->call([] {});
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stream->end_capture()->node_count(), 400u);
}

TEST(HostCapture, RefusesGraphsOfOtherBackends) {
  const OwnedStream stream;
  expect_error(Errc::invalid_argument, [&] { stream->launch(std::make_shared<ForeignGraph>()); });
  expect_error(Errc::invalid_argument, [&] { stream->launch(nullptr); });
}

TEST(HostRetain, EagerlyHoldsUntilTheWorkBeforeItIsDone) {
  const OwnedStream stream;
  Gate gate;
  stream->call(gate.pass());
  auto allocation = std::make_shared<FakeAllocation>();
  const std::weak_ptr<FakeAllocation> watch = allocation;
  stream->retain(std::move(allocation));
  EXPECT_FALSE(watch.expired());
  gate.open();
  stream->synchronize();
  EXPECT_TRUE(watch.expired());
}

TEST(HostRetain, CapturedHoldsAsLongAsTheGraph) {
  const OwnedStream stream;
  auto allocation = std::make_shared<FakeAllocation>();
  const std::weak_ptr<FakeAllocation> watch = allocation;
  stream->begin_capture();
  stream->retain(std::move(allocation));
  auto graph = stream->end_capture();
  stream->launch(graph);
  stream->synchronize();
  EXPECT_FALSE(watch.expired()) << "the graph can be launched again";
  graph.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(HostRetain, HoldsForALaunchThatOutlivesItsGraph) {
  const OwnedStream stream;
  Gate gate;
  auto allocation = std::make_shared<FakeAllocation>();
  const std::weak_ptr<FakeAllocation> watch = allocation;
  stream->begin_capture();
  stream->retain(std::move(allocation));
  auto graph = stream->end_capture();
  stream->call(gate.pass());
  stream->launch(graph);
  graph.reset();
  EXPECT_FALSE(watch.expired());
  gate.open();
  stream->synchronize();
  EXPECT_TRUE(watch.expired());
}

TEST(HostRetain, HoldsForAGraphInsideAnother) {
  const OwnedStream stream;
  auto allocation = std::make_shared<FakeAllocation>();
  const std::weak_ptr<FakeAllocation> watch = allocation;
  stream->begin_capture();
  stream->retain(std::move(allocation));
  auto inner = stream->end_capture();
  stream->begin_capture();
  stream->launch(inner);
  auto outer = stream->end_capture();
  inner.reset();
  EXPECT_FALSE(watch.expired());
  outer.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(HostRetain, EndsWithACaptureThatWasNeverFinished) {
  auto allocation = std::make_shared<FakeAllocation>();
  const std::weak_ptr<FakeAllocation> watch = allocation;
  {
    const OwnedStream stream;
    stream->begin_capture();
    stream->retain(std::move(allocation));
  }
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace iridium
