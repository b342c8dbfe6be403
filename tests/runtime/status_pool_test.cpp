#include "runtime/status_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <set>
#include <thread>
#include <utility>

#include "backend/host/host_backend.h"
#include "base/random.h"

namespace iridium {
namespace {

using Words = std::vector<std::shared_ptr<LaneStatus>>;

/// More than a chunk of the pool holds.
constexpr std::size_t many = 200;

void expect_zero(const LaneStatus& status) {
  EXPECT_EQ(status.abort, 0u);
  EXPECT_EQ(status.fault_taken, 0u);
  EXPECT_EQ(status.failed, 0u);
  EXPECT_EQ(status.left, 0u);
  EXPECT_EQ(status.fault.kind, FaultKind::none);
  EXPECT_EQ(status.fault.missing, 0u);
  EXPECT_EQ(status.fault.seen, 0u);
  EXPECT_EQ(status.fault.operation.text[0], '\0');
}

void spoil(LaneStatus& status) {
  status.abort = status.fault_taken = status.failed = 1;
  status.left = ~std::uint64_t{0};
  status.fault.kind = FaultKind::lane_busy;
  status.fault.missing = 7;
  status.fault.seen = 8;
  status.fault.operation.text[0] = 'x';
}

class StatusPools : public testing::Test {
 public:
  void SetUp() override {
    const std::size_t bytes = backend->granularity();
    const auto window = backend->open_window(random_id(), 1, bytes);
    window->map(0, backend->create_segment(bytes));
    pool = std::make_shared<StatusPool>(
        *backend, std::make_shared<Heap>(window, 0, 1, bytes, streams), streams);
  }

  Words take(std::size_t count) {
    Words words;
    for (std::size_t i = 0; i < count; ++i) words.push_back(pool->take());
    return words;
  }

  /// Whether `address` is among the next words, which are held from now on.
  bool hands_out(const LaneStatus* address) {
    bool found = false;
    for (auto& word : take(many)) {
      found = found || word.get() == address;
      held.push_back(std::move(word));
    }
    return found;
  }

  std::unique_ptr<Backend> backend = make_host_backend();
  std::shared_ptr<StreamRegistry> streams = std::make_shared<StreamRegistry>();
  std::shared_ptr<StatusPool> pool;
  Words held;
};

/// A stream whose work waits until it is let go.
class BlockedStream {
 public:
  BlockedStream(Backend& backend, StreamRegistry& streams) : stream_(backend.make_stream()) {
    streams.add(stream_);
    stream_->call([opened = promise_.get_future().share()] { opened.wait(); });
  }
  ~BlockedStream() {
    let_go();
    stream_->close();
  }
  BlockedStream(const BlockedStream&) = delete;
  BlockedStream& operator=(const BlockedStream&) = delete;

  void let_go() {
    if (!std::exchange(blocked_, false)) return;
    promise_.set_value();
    stream_->synchronize();
  }

 private:
  std::shared_ptr<detail::StreamImpl> stream_;
  std::promise<void> promise_;
  bool blocked_ = true;
};

TEST_F(StatusPools, GiveWordsThatAreZero) {
  std::set<const LaneStatus*> first;
  for (const auto& word : take(many)) {
    expect_zero(*word);
    spoil(*word);
    first.insert(word.get());
  }
  std::size_t again = 0;
  for (const auto& word : take(many)) {
    expect_zero(*word);
    again += first.count(word.get());
  }
  EXPECT_GT(again, 0u) << "no word was handed out twice: nothing was tested";
}

TEST_F(StatusPools, GiveMoreThanAChunkOfWordsEachOnALineOfItsOwn) {
  const Words words = take(many);
  std::set<std::uintptr_t> addresses;
  for (const auto& word : words) addresses.insert(reinterpret_cast<std::uintptr_t>(word.get()));
  ASSERT_EQ(addresses.size(), many);
  std::uintptr_t end = 0;
  for (const std::uintptr_t address : addresses) {
    EXPECT_EQ(address % 128, 0u);
    EXPECT_GE(address, end);
    end = address + sizeof(LaneStatus);
  }
}

TEST_F(StatusPools, DoNotGrowWhenWordsComeBack) {
  std::set<const LaneStatus*> addresses;
  for (std::size_t i = 0; i < 10 * many; ++i) addresses.insert(pool->take().get());
  EXPECT_LT(addresses.size(), many);
}

TEST_F(StatusPools, KeepAWordFromOthersWhileWorkSubmittedBeforeRuns) {
  BlockedStream stream(*backend, *streams);
  BlockedStream another(*backend, *streams);
  auto word = pool->take();
  const LaneStatus* const address = word.get();
  word.reset();
  EXPECT_FALSE(hands_out(address)) << "two streams run";
  stream.let_go();
  EXPECT_FALSE(hands_out(address)) << "one stream runs";
  another.let_go();
  EXPECT_TRUE(hands_out(address));
}

TEST_F(StatusPools, DoNotTouchAWordThatWorkSubmittedBeforeMayRead) {
  BlockedStream stream(*backend, *streams);
  auto word = pool->take();
  LaneStatus* const address = word.get();
  address->abort = 1;
  word.reset();
  const Words others = take(many);
  EXPECT_EQ(address->abort, 1u);
}

TEST_F(StatusPools, LiveAsLongAsTheirWords) {
  const auto word = pool->take();
  const std::weak_ptr<StatusPool> watched = pool;
  pool.reset();
  EXPECT_FALSE(watched.expired());
  word->failed = 1;
}

TEST_F(StatusPools, GiveThreadsWordsOfTheirOwn) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        const auto first = pool->take();
        const auto second = pool->take();
        for (LaneStatus* word : {first.get(), second.get()}) {
          EXPECT_EQ(word->abort, 0u);
          word->abort = 1;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace iridium
