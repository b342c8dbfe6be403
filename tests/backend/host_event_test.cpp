// Streams of the host backend that wait for each other, running and in captures.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
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

class ForeignEvent final : public detail::EventImpl {};

TEST(HostEvent, HoldsWorkUntilAnotherStreamIsThere) {
  const OwnedStream first;
  const OwnedStream second;
  Gate gate;
  std::vector<char> seen;
  first->call(gate.pass());
  first->call([&seen] { seen.push_back('a'); });
  second->wait(first->record());
  second->call([&seen] { seen.push_back('b'); });
  EXPECT_FALSE(second->idle());
  gate.open();
  second->synchronize();
  EXPECT_EQ(seen, (std::vector<char>{'a', 'b'}));
}

TEST(HostEvent, IsBehindEarlierWorkOnly) {
  const OwnedStream first;
  const OwnedStream second;
  Gate gate;
  first->call([] {});
  const auto event = first->record();
  first->call(gate.pass());
  second->wait(event);
  second->synchronize();
  EXPECT_FALSE(first->idle());
}

TEST(HostEvent, MayOutliveItsStream) {
  const OwnedStream second;
  std::shared_ptr<const detail::EventImpl> event;
  Gate gate;
  std::atomic<bool> done = false;
  {
    const OwnedStream first;
    first->call(gate.pass());
    first->call([&done] { done = true; });
    event = first->record();
  }
  second->wait(event);
  EXPECT_FALSE(second->idle());
  gate.open();
  second->synchronize();
  EXPECT_TRUE(done);
  second->wait(event);
  second->synchronize();
}

TEST(HostEvent, StreamsMayWaitForEachOtherOverAndOver) {
  const OwnedStream first;
  const OwnedStream second;
  int sum = 0;
  for (int i = 0; i < 1000; ++i) {
    first->call([&sum, i] { sum = 3 * sum + i; });
    second->wait(first->record());
    second->call([&sum] { sum %= 1009; });
    first->wait(second->record());
  }
  first->synchronize();
  int expected = 0;
  for (int i = 0; i < 1000; ++i) expected = (3 * expected + i) % 1009;
  EXPECT_EQ(sum, expected);
}

TEST(HostEvent, OfAnotherBackendIsRefused) {
  const OwnedStream stream;
  const Error error =
      expect_error(Errc::invalid_argument, [&] { stream->wait(std::make_shared<ForeignEvent>()); });
  EXPECT_NE(std::string(error.what()).find("another backend"), std::string::npos) << error.what();
}

/// A capture on one stream that another one joins and leaves.
struct Fork {
  Fork() {
    main->begin_capture();
    main->call([this] { seen.push_back('a'); });
    branch->wait(main->record());
    branch->call([this] { seen.push_back('b'); });
    main->call([this] { seen.push_back('c'); });
  }
  void join() const { main->wait(branch->record()); }

  std::vector<char> seen;
  const OwnedStream main;
  const OwnedStream branch;
};

TEST(HostFork, IsRecordedAndReplayedWhole) {
  Fork fork;
  EXPECT_EQ(fork.branch->capture_status(), CaptureStatus::active);
  fork.join();
  const auto graph = fork.main->end_capture();
  EXPECT_EQ(graph->node_count(), 3u);
  EXPECT_EQ(fork.branch->capture_status(), CaptureStatus::none);
  EXPECT_TRUE(fork.seen.empty());
  for (const int replays : {1, 2}) {
    fork.branch->launch(graph);
    fork.branch->synchronize();
    EXPECT_EQ(fork.seen.size(), 3u * static_cast<std::size_t>(replays));
  }
  // Both run again.
  for (const OwnedStream* stream : {&fork.main, &fork.branch}) {
    (*stream)->call([&fork] { fork.seen.push_back('d'); });
    (*stream)->synchronize();
  }
  EXPECT_EQ(fork.seen.size(), 8u);
}

TEST(HostFork, ThatIsNotJoinedLosesTheCapture) {
  Fork fork;
  const Error error = expect_error(Errc::invalid_argument, [&] { fork.main->end_capture(); });
  EXPECT_NE(std::string(error.what()).find("has not waited for"), std::string::npos)
      << error.what();
  for (const OwnedStream* stream : {&fork.main, &fork.branch})
    EXPECT_EQ((*stream)->capture_status(), CaptureStatus::none);
}

TEST(HostFork, HasToBeJoinedBehindAllOfItsWork) {
  Fork fork;
  fork.join();
  fork.branch->call([] {});
  expect_error(Errc::invalid_argument, [&] { fork.main->end_capture(); });
}

TEST(HostFork, MayBeJoinedThroughAThirdStream) {
  Fork fork;
  const OwnedStream third;
  third->wait(fork.branch->record());
  third->call([] {});
  fork.main->wait(third->record());
  EXPECT_EQ(fork.main->end_capture()->node_count(), 4u);
}

TEST(HostFork, WithoutWorkNeedsNoJoin) {
  const OwnedStream main;
  const OwnedStream branch;
  main->begin_capture();
  main->call([] {});
  branch->wait(main->record());
  EXPECT_EQ(main->end_capture()->node_count(), 1u);
}

TEST(HostFork, IsEndedByTheStreamThatBeganIt) {
  Fork fork;
  const Error error = expect_error(Errc::invalid_argument, [&] { fork.branch->end_capture(); });
  EXPECT_NE(std::string(error.what()).find("begun on another stream"), std::string::npos)
      << error.what();
  expect_error(Errc::invalid_argument, [&] { fork.branch->begin_capture(); });
  expect_error(Errc::capture_unsupported, [&] { fork.branch->synchronize(); });
  fork.join();
  EXPECT_EQ(fork.main->end_capture()->node_count(), 3u);
}

TEST(HostFork, KeepsWhatTheOtherStreamRetains) {
  auto first = std::make_shared<FakeAllocation>();
  auto second = std::make_shared<FakeAllocation>();
  const std::vector<std::weak_ptr<FakeAllocation>> alive = {first, second};
  Fork fork;
  fork.branch->retain(std::move(first));
  fork.branch->retain_in_capture(std::move(second));
  fork.join();
  auto graph = fork.main->end_capture();
  for (const auto& resource : alive) EXPECT_FALSE(resource.expired());
  graph.reset();
  for (const auto& resource : alive) EXPECT_TRUE(resource.expired());
}

TEST(HostFork, TakesGraphsOnEitherStream) {
  const OwnedStream inner;
  inner->begin_capture();
  inner->call([] {});
  const auto child = inner->end_capture();
  Fork fork;
  fork.branch->launch(child);
  expect_error(Errc::invalid_argument, [&] { fork.main->end_capture(); });
  Fork joined;
  joined.branch->launch(child);
  joined.join();
  EXPECT_EQ(joined.main->end_capture()->node_count(), 4u);
}

TEST(HostFork, GoesOnWhenAnEventIsNotOfTheCapture) {
  const OwnedStream other;
  const auto outside = other->record();
  Fork fork;
  for (const OwnedStream* stream : {&fork.main, &fork.branch})
    expect_error(Errc::capture_unsupported, [&] { (*stream)->wait(outside); });
  const Fork another;
  expect_error(Errc::capture_unsupported, [&] { fork.main->wait(another.main->record()); });
  fork.join();
  EXPECT_EQ(fork.main->end_capture()->node_count(), 3u);
}

TEST(HostFork, CannotBeMadeFromACaptureThatHasEnded) {
  const OwnedStream main;
  const OwnedStream late;
  main->begin_capture();
  const auto event = main->record();
  main->end_capture();
  const Error error = expect_error(Errc::invalid_argument, [&] { late->wait(event); });
  EXPECT_NE(std::string(error.what()).find("has ended"), std::string::npos) << error.what();
  EXPECT_EQ(late->capture_status(), CaptureStatus::none);
}

TEST(HostFork, EndsWhenTheStreamThatBeganItGoes) {
  const OwnedStream branch;
  bool ran = false;
  {
    const OwnedStream main;
    main->begin_capture();
    branch->wait(main->record());
  }
  EXPECT_EQ(branch->capture_status(), CaptureStatus::none);
  branch->call([&ran] { ran = true; });
  branch->synchronize();
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace iridium
