#include "runtime/heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <random>
#include <thread>

#include "backend/host/host_stream.h"
#include "support/ranks.h"

namespace iridium {
namespace {

using test::expect_error;
using Array = std::shared_ptr<detail::Allocation>;

constexpr std::size_t granule = OffsetAllocator::granule;

class PlainWindow final : public Window {
 public:
  PlainWindow(int ranks, std::size_t stride) : memory_(static_cast<std::size_t>(ranks) * stride) {
    base_ = memory_.data();
    stride_ = stride;
  }
  void map(int, const FileDescriptor&) override {}

 private:
  std::vector<std::byte> memory_;
};

/// A heap per rank, all in this thread, with the exchange between them done by hand.
class World {
 public:
  World(int ranks, std::size_t bytes) {
    window = std::make_shared<PlainWindow>(ranks, bytes);
    for (int rank = 0; rank < ranks; ++rank) {
      streams.push_back(std::make_shared<StreamRegistry>());
      heaps.push_back(std::make_shared<Heap>(window, rank, ranks, bytes, streams.back()));
    }
  }

  std::size_t size() const { return heaps.size(); }

  /// Every rank reports, and every rank hears all reports.
  bool agree() {
    std::vector<Bytes> reports;
    for (const auto& heap : heaps) reports.push_back(heap->report());
    const std::vector<std::span<const std::byte>> spans(reports.begin(), reports.end());
    std::vector<bool> more;
    for (const auto& heap : heaps) more.push_back(heap->apply(spans));
    EXPECT_EQ(std::count(more.begin(), more.end(), more[0]), static_cast<std::ptrdiff_t>(size()))
        << "ranks disagree on whether more is to come";
    return more[0];
  }

  /// The array on every rank; nothing when there is no room, on all ranks alike.
  std::vector<Array> allocate(std::size_t bytes, std::size_t alignment = 1) {
    std::vector<Array> arrays;
    for (const auto& heap : heaps) arrays.push_back(heap->allocate(bytes, alignment));
    const auto missing = std::count(arrays.begin(), arrays.end(), nullptr);
    if (missing == 0) return arrays;
    EXPECT_EQ(missing, static_cast<std::ptrdiff_t>(size())) << "ranks disagree on whether it fits";
    return {};
  }

  std::size_t offset(const std::vector<Array>& arrays, std::size_t rank) const {
    return static_cast<std::size_t>(arrays[rank]->data() - heaps[rank]->segment());
  }

  std::shared_ptr<PlainWindow> window;
  std::vector<std::shared_ptr<StreamRegistry>> streams;
  std::vector<std::shared_ptr<Heap>> heaps;
};

/// A stream known to one rank, and what its work waits at.
class BusyStream {
 public:
  explicit BusyStream(StreamRegistry& registry) : stream_(make_host_stream()) {
    registry.add(stream_);
  }
  ~BusyStream() {
    let_go();
    stream_->close();
  }
  BusyStream(const BusyStream&) = delete;
  BusyStream& operator=(const BusyStream&) = delete;

  void block() {
    stream_->call([opened = promise_.get_future().share()] { opened.wait(); });
    blocked_ = true;
  }
  void let_go() {
    if (!std::exchange(blocked_, false)) return;
    promise_.set_value();
    stream_->synchronize();
  }
  const std::shared_ptr<detail::StreamImpl>& stream() const { return stream_; }

 private:
  std::shared_ptr<detail::StreamImpl> stream_;
  std::promise<void> promise_;
  bool blocked_ = false;
};

/// An array of the random test, as the model knows it.
struct ModelArray {
  std::size_t offset = 0;
  std::size_t bytes = 0;
  std::vector<Array> arrays;  ///< null where freed
};

class RandomHeap : public testing::TestWithParam<unsigned> {
 protected:
  static constexpr int ranks = 4;
  static constexpr std::size_t heap_bytes = 128 * granule;

  void allocate() {
    const std::size_t bytes = random_() % (8 * granule);
    const std::size_t alignment = std::size_t{1} << (random_() % 12);
    std::vector<Array> arrays = world_.allocate(bytes, alignment);
    if (arrays.empty()) {
      ++refused_;
      return;
    }
    const std::size_t offset = world_.offset(arrays, 0);
    for (std::size_t rank = 0; rank < world_.size(); ++rank) {
      ASSERT_EQ(world_.offset(arrays, rank), offset);
      ASSERT_EQ(arrays[rank]->bytes(), bytes);
      ASSERT_TRUE(world_.heaps[rank]->contains(arrays[rank]->data(), bytes));
    }
    ASSERT_EQ(offset % alignment, 0u);
    ASSERT_LE(offset + bytes, heap_bytes);
    for (const ModelArray& other : live_)
      ASSERT_TRUE(offset + std::max<std::size_t>(bytes, 1) <= other.offset ||
                  other.offset + std::max<std::size_t>(other.bytes, 1) <= offset)
          << "memory that a rank still uses was given out again";
    live_.push_back({offset, bytes, std::move(arrays)});
  }

  void free_on_one_rank() {
    if (live_.empty()) return;
    ModelArray& model = live_[random_() % live_.size()];
    const std::size_t rank = random_() % ranks;
    if (!model.arrays[rank]) return;
    const std::byte* address = model.arrays[rank]->data();
    model.arrays[rank].reset();
    ASSERT_FALSE(world_.heaps[rank]->contains(address, 1));
  }

  void agree() {
    EXPECT_FALSE(world_.agree());
    std::erase_if(live_, [](const ModelArray& model) {
      return std::count(model.arrays.begin(), model.arrays.end(), nullptr) == ranks;
    });
  }

  std::mt19937 random_{GetParam()};
  World world_{ranks, heap_bytes};
  std::vector<ModelArray> live_;  ///< not yet free by common agreement
  int refused_ = 0;
};

TEST_P(RandomHeap, NeverGivesOutMemoryThatARankStillUses) {
  for (int i = 0; i < 3000; ++i) {
    const auto what = random_() % 10;
    if (what < 3)
      ASSERT_NO_FATAL_FAILURE(allocate());
    else if (what < 9)
      ASSERT_NO_FATAL_FAILURE(free_on_one_rank());
    else
      agree();
  }
  EXPECT_GT(refused_, 0) << "the heap was never full: the test is too gentle";
  live_.clear();
  world_.agree();
  EXPECT_FALSE(world_.allocate(heap_bytes).empty()) << "memory was lost";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomHeap, testing::Values(1u, 2u, 3u));

TEST(Heaps, ReuseMemoryWhenAllRanksFreedItAndSaidSo) {
  World world(3, 4 * granule);
  std::vector<Array> arrays = world.allocate(4 * granule);
  ASSERT_EQ(arrays.size(), 3u);
  for (std::size_t rank = 0; rank < world.size(); ++rank) {
    world.agree();
    EXPECT_TRUE(world.allocate(1).empty()) << rank << " ranks have freed it";
    arrays[rank].reset();
  }
  EXPECT_TRUE(world.allocate(1).empty()) << "the last free is not reported yet";
  EXPECT_FALSE(world.agree());
  EXPECT_FALSE(world.allocate(4 * granule).empty());
}

TEST(Heaps, RememberFreesOfEarlierReports) {
  World world(2, granule);
  std::vector<Array> arrays = world.allocate(1);
  arrays[1].reset();
  for (int i = 0; i < 5; ++i) world.agree();
  EXPECT_TRUE(world.allocate(1).empty());
  arrays[0].reset();
  world.agree();
  EXPECT_FALSE(world.allocate(1).empty());
}

TEST(Heaps, ServeTheLargestWorld) {
  World world(max_ranks, granule);
  std::vector<Array> arrays = world.allocate(granule);
  const Array last = std::move(arrays.back());
  arrays.clear();
  world.agree();
  EXPECT_TRUE(world.allocate(1).empty()) << "rank 63 has not freed it";
  World other(max_ranks, granule);
  other.allocate(granule);
  other.agree();
  EXPECT_FALSE(other.allocate(granule).empty());
}

TEST(Heaps, ReportAnyNumberOfFrees) {
  constexpr std::size_t count = 20'000;
  World world(2, count * granule);
  std::vector<std::vector<Array>> arrays;
  for (std::size_t i = 0; i < count; ++i) arrays.push_back(world.allocate(0));
  EXPECT_TRUE(world.allocate(0).empty());
  arrays.clear();
  int rounds = 1;
  while (world.agree()) ++rounds;
  EXPECT_GT(rounds, 1) << "one report is bounded";
  EXPECT_LT(rounds, 100);
  EXPECT_FALSE(world.allocate(count * granule).empty());
}

TEST(Heaps, ReportAFreeOnlyWhenItsWorkIsDone) {
  World world(2, granule);
  BusyStream busy(*world.streams[0]);
  std::vector<Array> arrays = world.allocate(granule);
  busy.block();
  arrays.clear();
  EXPECT_FALSE(world.heaps[0]->frees_are_done());
  EXPECT_TRUE(world.heaps[1]->frees_are_done());
  EXPECT_TRUE(world.agree()) << "rank 0 has more to come";
  EXPECT_TRUE(world.allocate(1).empty()) << "a kernel of rank 0 may still write there";
  busy.let_go();
  EXPECT_TRUE(world.heaps[0]->frees_are_done());
  EXPECT_FALSE(world.agree());
  EXPECT_FALSE(world.allocate(1).empty());
}

TEST(Heaps, DoNotWaitForWorkSubmittedAfterTheFree) {
  World world(2, granule);
  BusyStream busy(*world.streams[0]);
  world.allocate(granule);
  busy.block();
  EXPECT_TRUE(world.heaps[0]->frees_are_done());
  EXPECT_FALSE(world.agree());
  EXPECT_FALSE(world.allocate(1).empty());
}

TEST(Heaps, WaitForEveryStream) {
  World world(1, granule);
  BusyStream first(*world.streams[0]);
  BusyStream second(*world.streams[0]);
  {
    const std::vector<Array> arrays = world.allocate(granule);
    first.block();
    second.block();
  }
  first.let_go();
  EXPECT_TRUE(world.agree());
  second.let_go();
  EXPECT_FALSE(world.agree());
  EXPECT_FALSE(world.allocate(1).empty());
}

TEST(Heaps, FreeWhatAStreamRetained) {
  World world(1, granule);
  BusyStream busy(*world.streams[0]);
  busy.block();
  busy.stream()->retain(world.allocate(granule).front());
  EXPECT_FALSE(world.agree()) << "the stream still holds the array: it is not freed";
  EXPECT_TRUE(world.allocate(1).empty());
  busy.let_go();
  EXPECT_FALSE(world.agree());
  EXPECT_FALSE(world.allocate(1).empty());
}

TEST(Heaps, KeepWhatWorkOnStreamsThatTheyDoNotKnowUses) {
  World world(1, granule);
  const auto other = std::make_shared<StreamRegistry>();
  BusyStream busy(*other);
  busy.block();
  Array array = world.allocate(granule).front();
  array->keep_until(busy.stream()->mark());
  array.reset();
  EXPECT_TRUE(world.agree());
  EXPECT_TRUE(world.allocate(1).empty());
  busy.let_go();
  EXPECT_FALSE(world.agree());
  EXPECT_FALSE(world.allocate(1).empty());
}

TEST(Heaps, FreeWhatAClosedStreamRefuses) {
  // The array's last reference ends inside the refused call, and freeing asks that same stream how
  // far it is.
  auto world = std::make_shared<World>(1, granule);
  auto refused = std::make_shared<std::promise<void>>();
  auto ended = refused->get_future();
  std::thread([world, refused] {
    const auto stream = make_host_stream();
    world->streams[0]->add(stream);
    stream->close();
    Array array = std::move(world->allocate(granule).front());
    expect_error(Errc::invalid_argument, [&] { stream->call([held = std::move(array)] {}); });
    refused->set_value();
  }).detach();
  ASSERT_EQ(ended.wait_for(std::chrono::seconds(10)), std::future_status::ready)
      << "the call waits for itself";
  EXPECT_FALSE(world->agree());
  EXPECT_FALSE(world->allocate(granule).empty());
}

TEST(Heaps, RefuseReportsThatAreNone) {
  World world(2, 4 * granule);
  const std::vector<Array> arrays = world.allocate(1);
  const Bytes nothing = PayloadWriter().number(std::uint8_t{0}).take();
  const Bytes unknown = PayloadWriter().number(std::uint8_t{0}).number(std::uint64_t{999}).take();
  const Bytes cut = PayloadWriter().number(std::uint8_t{0}).number(std::uint32_t{1}).take();
  const Error error =
      expect_error(Errc::protocol, [&] { world.heaps[0]->apply({nothing, unknown}); });
  EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos);
  expect_error(Errc::protocol, [&] { world.heaps[0]->apply({cut, nothing}); });
  expect_error(Errc::protocol, [&] { world.heaps[0]->apply({Bytes{}, nothing}); });
}

TEST(Heaps, KnowTheirLiveArrays) {
  World world(2, 16 * granule);
  const Heap& heap = *world.heaps[1];
  std::vector<Array> first = world.allocate(1000);
  const std::vector<Array> second = world.allocate(granule);
  std::byte* data = first[1]->data();
  EXPECT_TRUE(heap.contains(data, 1000));
  EXPECT_TRUE(heap.contains(data, 0));
  EXPECT_TRUE(heap.contains(data + 999, 1));
  EXPECT_FALSE(heap.contains(data, 1001)) << "past the end of the array";
  EXPECT_FALSE(heap.contains(data + 999, 2));
  EXPECT_FALSE(heap.contains(data + 1001, 0)) << "between arrays";
  EXPECT_FALSE(heap.contains(data, ~std::size_t{0}));
  EXPECT_FALSE(heap.contains(data + 500, ~std::size_t{0} - 499)) << "the end wraps around";
  EXPECT_FALSE(heap.contains(data, 1024 + granule)) << "two neighbouring arrays are not one";
  EXPECT_FALSE(heap.contains(first[0]->data(), 1)) << "another rank's array";
  EXPECT_FALSE(heap.contains(nullptr, 0));
  EXPECT_FALSE(heap.contains(&world, 1));
  EXPECT_FALSE(heap.contains(heap.segment() + heap.stride() - 1, 1)) << "nothing lives there";
  EXPECT_FALSE(heap.contains(heap.segment() + heap.stride(), 0));
  first[1].reset();
  EXPECT_FALSE(heap.contains(data, 1)) << "freed here";
  EXPECT_TRUE(world.heaps[0]->contains(first[0]->data(), 1)) << "but not there";
  EXPECT_TRUE(heap.contains(second[1]->data(), granule));
}

TEST(Heaps, KnowEmptyArrays) {
  World world(1, 4 * granule);
  const std::vector<Array> first = world.allocate(0);
  const std::vector<Array> second = world.allocate(0);
  EXPECT_NE(first[0]->data(), second[0]->data());
  EXPECT_TRUE(world.heaps[0]->contains(first[0]->data(), 0));
  EXPECT_FALSE(world.heaps[0]->contains(first[0]->data(), 1));
}

TEST(Heaps, TranslateBetweenSegments) {
  World world(3, 4 * granule);
  const std::vector<Array> arrays = world.allocate(granule);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(world.heaps[1]->translate(arrays[1]->data() + 5, static_cast<int>(rank)),
              arrays[rank]->data() + 5);
    EXPECT_EQ(arrays[2]->at(static_cast<int>(rank)), arrays[rank]->data());
  }
  *arrays[0]->at(2) = std::byte{77};
  EXPECT_EQ(*arrays[2]->data(), std::byte{77});
}

TEST(Heaps, RefuseToTranslateForRanksThatDoNotExist) {
  World world(3, 4 * granule);
  const std::vector<Array> arrays = world.allocate(granule);
  for (const int rank : {-1, 3, 64}) {
    for (const auto& call :
         {std::function<void()>([&] { arrays[1]->at(rank); }),
          std::function<void()>([&] { world.heaps[1]->translate(arrays[1]->data(), rank); })}) {
      const std::string message = expect_error(Errc::invalid_argument, call).what();
      EXPECT_NE(message.find("rank " + std::to_string(rank)), std::string::npos) << message;
      EXPECT_NE(message.find("3 ranks"), std::string::npos) << message;
    }
  }
}

TEST(Heaps, RefuseToTranslateWhatIsOffTheSegment) {
  World world(3, 4 * granule);
  const Heap& heap = *world.heaps[1];
  const int local = 0;
  EXPECT_NO_THROW(heap.translate(heap.segment() + heap.stride() - 1, 0));
  for (const void* pointer : {static_cast<const void*>(nullptr), static_cast<const void*>(&local),
                              static_cast<const void*>(heap.segment() - 1),
                              static_cast<const void*>(heap.segment() + heap.stride())})
    expect_error(Errc::invalid_argument, [&] { heap.translate(pointer, 0); });
}

TEST(Heaps, SayHowMuchRoomThereIs) {
  World world(2, 16 * granule);
  std::vector<Array> gone = world.allocate(2 * granule);
  const std::vector<Array> kept = world.allocate(granule);
  gone[0].reset();
  world.agree();
  const std::string text = world.heaps[0]->describe_room(99'999);
  for (const char* part :
       {"requested 99999 bytes", "free 3328 bytes", "largest free block 3328 bytes",
        "heap 4096 bytes", "not on all yet: 512 bytes"})
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks " << part;
  EXPECT_NE(world.heaps[1]->describe_room(1).find("not on all yet: 0 bytes"), std::string::npos);
}

TEST(Heaps, LiveAsLongAsTheirArrays) {
  std::weak_ptr<Window> window;
  std::vector<Array> arrays;
  {
    World world(2, 4 * granule);
    window = world.window;
    arrays = world.allocate(granule);
  }
  EXPECT_FALSE(window.expired());
  *arrays[0]->at(1) = std::byte{9};
  EXPECT_EQ(*arrays[1]->data(), std::byte{9});
  arrays[0].reset();
  EXPECT_EQ(*arrays[1]->data(), std::byte{9});
  arrays[1].reset();
  EXPECT_TRUE(window.expired());
}

TEST(Heaps, MayBeFreedFromAnyThread) {
  constexpr std::size_t count = 400;
  World world(1, count * granule);
  for (int round = 0; round < 3; ++round) {
    std::vector<Array> arrays;
    for (std::size_t i = 0; i < count; ++i) arrays.push_back(world.allocate(1).front());
    std::vector<std::thread> threads;
    for (std::size_t first = 0; first < 4; ++first)
      threads.emplace_back([&, first] {
        for (std::size_t i = first; i < count; i += 4) arrays[i].reset();
      });
    for (int i = 0; i < 10; ++i) world.agree();
    for (std::thread& thread : threads) thread.join();
    world.agree();
    EXPECT_FALSE(world.allocate(count * granule).empty());
    world.agree();
  }
}

}  // namespace
}  // namespace iridium
