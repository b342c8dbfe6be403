#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <random>
#include <thread>

#include "base/host_wait.h"
#include "support/memory.h"
#include "support/ranks.h"
#include "support/sanitizers.h"

namespace iridium::test {
namespace {

constexpr std::size_t small_heap = std::size_t{16} << 20;
const ContextOptions small_options = {
    .heap_bytes = small_heap,
    .world = {.max_blocks = 4, .scratch_bytes = 4096, .packet_bytes = 1024}};

class AllocationTest : public ::testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, AllocationTest, ::testing::ValuesIn(all_ranks()),
                         [](const auto& test) { return name(test.param); });

/// The largest array that can be had now.
std::size_t largest_array(Context& context) {
  std::size_t low = 0;
  std::size_t high = small_heap;
  while (high - low > 256) {
    const std::size_t middle = (low + high) / 2;
    try {
      context.allocate<std::byte>(middle);
      low = middle;
    } catch (const Error& error) {
      if (error.code() != Errc::out_of_memory) throw;
      high = middle;
    }
  }
  return low;
}

/// Random arrays, each filled with a pattern of its own. All ranks allocate and give up the same
/// arrays, but each frees them when its own generator says so.
class RandomArrays {
 public:
  RandomArrays(Context& context, unsigned seed)
      : context_(context),
        memory_(context),
        shared_(seed),
        own_(seed * 1000 + static_cast<unsigned>(context.rank())) {}

  void step() {
    if (given_.size() < 3 || shared_() % 3 != 0)
      allocate();
    else
      give_up();
    // Arrays given up by the plan are freed by each rank in its own time.
    while (!given_up_.empty() && own_() % 2 == 0) {
      check(given_up_.begin()->first, given_up_.begin()->second);
      given_up_.erase(given_up_.begin());
    }
  }

  void clear() {
    for (const auto& [id, array] : given_) check(id, array);
    given_.clear();
    given_up_.clear();
  }

 private:
  void allocate() {
    const std::size_t count = shared_() % (1 << (shared_() % 20));
    SymmetricArray<std::uint32_t> array;
    try {
      array = context_.allocate<std::uint32_t>(count);
    } catch (const Error& error) {
      if (error.code() != Errc::out_of_memory) throw;
      out_of_memory_ = true;
    }
    const auto offset = array.data() == nullptr
                            ? std::ptrdiff_t{-1}
                            : reinterpret_cast<std::byte*>(array.data()) - context_.segment();
    for (const std::ptrdiff_t other : context_.world().all_gather(offset))
      require(other == offset, "the same offset on every rank");
    if (array.data() == nullptr) return;
    std::vector<std::uint32_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = value(next_, i);
    memory_.write(array, values);
    require(context_.is_symmetric(array.data(), array.bytes()), "an array is symmetric memory");
    given_.emplace(next_++, std::move(array));
  }

  void give_up() {
    auto chosen = std::next(given_.begin(), static_cast<std::ptrdiff_t>(shared_() % given_.size()));
    given_up_.insert(given_.extract(chosen));
  }

  std::uint32_t value(std::uint32_t id, std::size_t index) const {
    return id * 7919u + static_cast<std::uint32_t>(index) * 31u +
           static_cast<std::uint32_t>(context_.rank());
  }

  void check(std::uint32_t id, const SymmetricArray<std::uint32_t>& array) {
    const auto values = memory_.read(array);
    for (std::size_t i = 0; i < array.size(); ++i)
      require(values[i] == value(id, i), "array " + std::to_string(id) + " was overwritten");
  }

  Context& context_;
  Memory memory_;
  std::mt19937 shared_;
  std::mt19937 own_;
  std::uint32_t next_ = 1;
  bool out_of_memory_ = false;
  std::map<std::uint32_t, SymmetricArray<std::uint32_t>> given_;
  std::map<std::uint32_t, SymmetricArray<std::uint32_t>>
      given_up_;  ///< by the plan; not freed here yet
};

IR_SCENARIO(random_arrays) {
  Context context(job, small_options);
  const std::size_t room = largest_array(context);
  for (unsigned seed = 1; seed <= (under_sanitizer ? 1 : 3); ++seed) {
    RandomArrays arrays(context, seed);
    for (int i = 0; i < 150; ++i) arrays.step();
    arrays.clear();
    require(largest_array(context) == room, "everything freed is one block again");
  }
}

TEST_P(AllocationTest, RandomPatternsNeverOverlapAndAgreeOnEveryRank) {
  expect_all_ok(run_ranks(GetParam().kind, "random_arrays", GetParam().size));
}

IR_SCENARIO(zero_bytes) {
  Context context(job, small_options);
  auto first = context.allocate<double>(0);
  auto second = context.allocate<double>(0);
  require(first.data() != nullptr && first.data() != second.data(), "each has an address");
  require(first.size() == 0 && first.bytes() == 0 && first.span().empty(), "and no elements");
  require(context.is_symmetric(first.data(), 0) && !context.is_symmetric(first.data(), 1),
          "of zero bytes");
  require(first.at(job.size - 1) != nullptr, "on every rank");
}

TEST_P(AllocationTest, ZeroBytesAreAllowed) {
  expect_all_ok(run_ranks(GetParam().kind, "zero_bytes", GetParam().size));
}

IR_SCENARIO(out_of_memory) {
  Context context(job, small_options);
  const Error error =
      require_error(Errc::out_of_memory, {}, [&] { context.allocate<std::byte>(small_heap); });
  for (const char* part :
       {"requested 16777216 bytes (16 MiB)", "free 16", "largest free block 16", "heap 16777216"})
    require(std::string(error.what()).find(part) != std::string::npos,
            std::string(part) + " in: " + error.what());
  require_error(Errc::out_of_memory, {}, [&] { context.allocate<double>(~std::size_t{0} / 2); });
  context.allocate<std::byte>(small_heap / 2);
}

TEST_P(AllocationTest, OutOfMemorySaysHowMuchThereIs) {
  expect_all_ok(run_ranks(GetParam().kind, "out_of_memory", GetParam().size));
}

IR_SCENARIO(frees_in_another_order) {
  Context context(job, small_options);
  const std::size_t half = small_heap / 5 * 2;
  for (int round = 0; round < 10; ++round) {
    auto first = context.allocate<std::byte>(half);
    auto second = context.allocate<std::byte>(half);
    if (job.rank % 2 == 0) {
      first = {};
      second = {};
    } else {
      second = {};
      first = {};
    }
  }
}

TEST_P(AllocationTest, FreedMemoryIsThereForTheNextAllocationWhateverTheOrder) {
  expect_all_ok(run_ranks(GetParam().kind, "frees_in_another_order", GetParam().size));
}

class AllocationOfThree : public ::testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, AllocationOfThree, ::testing::ValuesIn(both_kinds(3)),
                         [](const auto& test) { return name(test.param); });

IR_SCENARIO(asks_for_something_else) {
  Context context(job, small_options);
  const std::size_t count = job.rank == 1 ? 200 : 100;
  const Error error =
      require_error(Errc::mismatch, {1}, [&] { context.allocate<std::byte>(count); });
  require(std::string(error.what())
                  .find("ranks 0, 2 called allocate(100 bytes, alignment 1); rank 1 called "
                        "allocate(200 bytes, alignment 1)") != std::string::npos,
          error.what());
  context.allocate<int>(10);
}

TEST_P(AllocationOfThree, MismatchSaysWhoAskedForWhat) {
  expect_all_ok(run_ranks(GetParam().kind, "asks_for_something_else", GetParam().size));
}

IR_SCENARIO(one_rank_keeps_it) {
  Context context(job, small_options);
  const std::size_t most = small_heap / 4 * 3;
  auto array = context.allocate<std::byte>(most);
  if (job.rank != 2) array = {};
  const Error error =
      require_error(Errc::out_of_memory, {}, [&] { context.allocate<std::byte>(most); });
  const std::string waiting =
      job.rank == 2 ? "not on all yet: 0 bytes" : "not on all yet: 12582912 bytes";
  require(std::string(error.what()).find(waiting) != std::string::npos, error.what());
  array = {};
  context.allocate<std::byte>(most);
}

TEST_P(AllocationOfThree, MemoryOneRankKeepsIsNotUsedAgain) {
  expect_all_ok(run_ranks(GetParam().kind, "one_rank_keeps_it", GetParam().size));
}

IR_SCENARIO(stream_still_writes) {
  Context context(job, small_options);
  const std::size_t most = small_heap / 4 * 3;
  std::promise<void> gate;
  std::atomic<bool> written = false;
  Stream stream = context.make_stream();
  auto array = context.allocate<std::byte>(most);
  if (job.rank == 1) {
    stream.call([&] {
      gate.get_future().wait();
      written = true;
    });
    stream.fill(array.data(), 1, 1);
  }
  array = {};
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    gate.set_value();
  });
  auto next = context.allocate<std::byte>(most);
  require(job.rank != 1 || written, "the memory came back only after the work on it was done");
  opener.join();
  Memory memory(context);
  memory.write(next.data(), std::byte{2});
  stream.synchronize();
  require(memory.read(next.data()) == std::byte{2}, "nobody wrote into the new array");
}

TEST_P(AllocationOfThree, MemoryIsUsedAgainOnlyAfterTheWorkOnItIsDone) {
  expect_all_ok(run_ranks(GetParam().kind, "stream_still_writes", GetParam().size));
}

IR_SCENARIO(frees_then_disagrees) {
  Context context(job, small_options);
  const std::size_t most = small_heap / 4 * 3;
  context.allocate<std::byte>(most);
  require_error(Errc::mismatch, {1}, [&] { context.allocate<std::byte>(job.rank == 1 ? 2 : 1); });
  context.allocate<std::byte>(most);
}

TEST_P(AllocationOfThree, WhatWasFreedBeforeAMismatchIsNotLost) {
  expect_all_ok(run_ranks(GetParam().kind, "frees_then_disagrees", GetParam().size));
}

IR_SCENARIO(stream_is_stuck) {
  ContextOptions options = small_options;
  options.timeout = short_timeout;
  Context context(job, options);
  const std::size_t most = small_heap / 4 * 3;
  std::promise<void> gate;
  Stream stream = context.make_stream();
  auto array = context.allocate<std::byte>(most);
  if (job.rank == 1) stream.call([&] { gate.get_future().wait(); });
  array = {};
  const FirstNoticeOverride first(std::chrono::milliseconds(1));
  const Error error = require_error(Errc::timeout, {1}, [&] { context.allocate<std::byte>(most); });
  const std::string text = error.what();
  require(text.find("the work on arrays freed on rank 1 did not end within 1.5 s, half of the "
                    "limit") != std::string::npos &&
              text.ends_with("; ContextOptions::timeout or IRIDIUM_TIMEOUT changes the limit"),
          text);
  gate.set_value();
  stream.synchronize();
  context.allocate<std::byte>(most);
}

TEST_P(AllocationOfThree, MemoryThatAStreamNeverGivesBackIsATimeoutOnAllRanks) {
  const auto results = run_ranks(GetParam().kind, "stream_is_stuck", GetParam().size);
  expect_all_ok(results);
  if (GetParam().kind == RankKind::threads) return;
  EXPECT_NE(results[1].error.find(" for work of rank 1 on freed arrays, at allocate("),
            std::string::npos)
      << results[1].error;
  EXPECT_NE(results[0].error.find(" for rank 1 at allocate("), std::string::npos)
      << results[0].error;
}

TEST(IsSymmetric, KnowsTheEdgesOfLiveArrays) {
  Context context(small_options);
  auto array = context.allocate<std::byte>(1000);
  std::byte* data = array.data();
  EXPECT_TRUE(context.is_symmetric(data, 1000));
  EXPECT_TRUE(context.is_symmetric(data + 999, 1));
  EXPECT_TRUE(context.is_symmetric(data + 1000, 0));
  EXPECT_FALSE(context.is_symmetric(data, 1001));
  EXPECT_FALSE(context.is_symmetric(data + 999, 2));
  EXPECT_FALSE(context.is_symmetric(data, ~std::size_t{0}));
  EXPECT_FALSE(context.is_symmetric(data - 1, 2));
  EXPECT_FALSE(context.is_symmetric(nullptr, 0));
  int on_the_stack = 0;
  EXPECT_FALSE(context.is_symmetric(&on_the_stack, sizeof on_the_stack));
  array = {};
  EXPECT_FALSE(context.is_symmetric(data, 1));
}

TEST(SymmetricArrayTest, HonoursAlignment) {
  struct alignas(1024) Wide {
    std::byte bytes[1024];
  };
  Context context(small_options);
  auto odd = context.allocate<std::byte>(1);
  auto wide = context.allocate<Wide>(2);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(wide.data()) % 1024, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(odd.data()) % 256, 0u);
}

TEST(SymmetricArrayTest, IsEmptyWhenDefaultOrMovedFrom) {
  Context context(small_options);
  SymmetricArray<int> none;
  EXPECT_EQ(none.data(), nullptr);
  auto array = context.allocate<int>(5);
  SymmetricArray<int> other = std::move(array);
  // NOLINTNEXTLINE(bugprone-use-after-move): the moved-from state is documented
  EXPECT_EQ(array.data(), nullptr);
  EXPECT_EQ(array.size(), 0u);
  EXPECT_EQ(other.size(), 5u);
}

}  // namespace
}  // namespace iridium::test
