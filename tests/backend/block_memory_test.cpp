// Block memory and copies to it, as the CPU's scheduler gives them to blocks.
#include "iridium/device/block_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "backend/host/block_scheduler.h"
#include "support/ranks.h"
#include "support/sanitizers.h"

namespace iridium {
namespace {

using test::expect_error;

using Numbers = std::vector<std::atomic<int>>;

std::vector<Schedule> all_schedules() {
  return {{}, {.split = true}, {.seed = 7}, {.split = true, .seed = 7}, {.split = true, .seed = 8}};
}

std::string name(const Schedule& schedule) {
  return std::string(schedule.split ? "split" : "whole") + " blocks, " +
         (schedule.seed ? "seed " + std::to_string(*schedule.seed) : "no seed");
}

template <class Kernel>
void run(const Schedule& schedule, const Kernel& kernel, int blocks) {
  BlockScheduler scheduler(schedule);
  scheduler.run(detail::kernel_entry<Kernel, detail::ThisCompiler>(), &kernel, blocks);
}

constexpr std::uint32_t unwritten = 0xffffffff;

/// Every thread leaves a number for every other one and looks for theirs, while other blocks do the
/// same. Counts the numbers that are wrong.
template <bool syncs>
struct LeaveNumbers {
  std::atomic<int>* wrong;

  IR_DEVICE void operator()(BlockOf<32> block) const {
    const BlockMemory<std::uint32_t, 32, struct Left> left(block);
    for (std::uint32_t round = 0; round < 20; ++round) {
      const auto number = [&](int thread) {
        return static_cast<std::uint32_t>(block.index() * 1000 + thread) * 100 + round;
      };
      left[block.thread()] = number(block.thread());
      if (syncs) block.sync();
      for (int thread = 0; thread < block.thread_count(); ++thread)
        if (left[thread] != number(thread)) *wrong += 1;
      block.pause(false);
      block.sync();
    }
  }
};

TEST(BlockMemory, IsTheBlocksAndNoOthers) {
  for (const Schedule& schedule : all_schedules()) {
    SCOPED_TRACE(name(schedule));
    std::atomic<int> wrong = 0;
    run(schedule, LeaveNumbers<true>{&wrong}, 20);
    EXPECT_EQ(wrong, 0);
  }
}

TEST(BlockMemory, ShowsAMissingBarrier) {
  if (test::under_thread_sanitizer) GTEST_SKIP() << "a data race, which ends the process";
  for (const Schedule& schedule : all_schedules()) {
    SCOPED_TRACE(name(schedule));
    std::atomic<int> wrong = 0;
    run(schedule, LeaveNumbers<false>{&wrong}, 3);
    if (schedule.split)
      EXPECT_GT(wrong, 0);
    else
      EXPECT_EQ(wrong, 0) << "one fiber per block cannot show it";
  }
}

template <int Threads>
IR_DEVICE std::uint32_t* common_words(BlockOf<Threads> block) {
  return BlockMemory<std::uint32_t, 4, struct Common>(block).data();
}

/// Notes where objects are, on every thread: two that are one, and some that are not.
struct NotePlaces {
  static constexpr int objects = 7;
  std::atomic<std::uintptr_t>* places;  ///< [block][thread][object]

  IR_DEVICE void operator()(BlockOf<32> block) const {
    auto* const mine = places + (block.index() * block.thread_count() + block.thread()) * objects;
    const auto note = [&](int object, const void* place) {
      mine[object] = reinterpret_cast<std::uintptr_t>(place);
    };
    note(0, common_words(block));
    note(1, BlockMemory<std::uint32_t, 4, struct OtherTag>(block).data());
    note(2, BlockMemory<float, 4, struct OtherTag>(block).data());
    note(3, BlockMemory<float, 8, struct OtherTag>(block).data());
    // Each begins at a multiple of 16, whatever comes before it.
    note(4, BlockMemory<char, 1, struct OneByte>(block).data());
    note(5, BlockMemory<double, 2, struct Behind>(block).data());
    note(6, common_words(block));
    block.sync();
  }
};

TEST(BlockMemory, IsOnePlaceForEachTagAndType) {
  constexpr int blocks = 3;
  constexpr std::array<std::size_t, 6> bytes = {16, 16, 16, 32, 1, 16};
  for (const Schedule& schedule : all_schedules()) {
    SCOPED_TRACE(name(schedule));
    const int threads = schedule.split ? 4 : 1;
    std::vector<std::atomic<std::uintptr_t>> places(
        static_cast<std::size_t>(blocks * threads * NotePlaces::objects));
    run(schedule, NotePlaces{places.data()}, blocks);
    for (int block = 0; block < blocks; ++block) {
      const auto* const first = places.data() + block * threads * NotePlaces::objects;
      for (int thread = 1; thread < threads; ++thread)
        for (int i = 0; i < NotePlaces::objects; ++i)
          EXPECT_EQ(first[i], first[thread * NotePlaces::objects + i]) << "object " << i;
      EXPECT_EQ(first[0], first[6]) << "two calls of one function";
      for (std::size_t a = 0; a < bytes.size(); ++a) {
        EXPECT_EQ(first[a] % 16, 0u) << "object " << a;
        for (std::size_t b = 0; b < bytes.size(); ++b)
          EXPECT_TRUE(a == b || first[a] + bytes[a] <= first[b] || first[b] + bytes[b] <= first[a])
              << a << " and " << b;
      }
    }
  }
}

/// Counts the bytes that are not as at a block's start, and writes all.
template <int N>
struct UseUp {
  std::atomic<int>* used;

  IR_DEVICE void operator()(BlockOf<32> block) const {
    const BlockMemory<std::uint8_t, N, struct Bytes> bytes(block);
    for (int i = block.thread(); i < N; i += block.thread_count()) {
      if (bytes[i] != 0xff) *used += 1;
      bytes[i] = 1;
    }
  }
};

TEST(BlockMemory, BeginsAnewInEveryBlockWithAllBitsSet) {
  for (const Schedule& schedule : all_schedules()) {
    SCOPED_TRACE(name(schedule));
    BlockScheduler scheduler(schedule);
    std::atomic<int> used = 0;
    const UseUp<1000> some{&used};
    const UseUp<max_block_memory_bytes> all{&used};
    for (int repeat = 0; repeat < 3; ++repeat) {
      scheduler.run(detail::kernel_entry<UseUp<1000>, detail::ThisCompiler>(), &some, 5);
      scheduler.run(detail::kernel_entry<UseUp<max_block_memory_bytes>, detail::ThisCompiler>(),
                    &all, 5);
    }
    EXPECT_EQ(used, 0);
  }
}

struct AskForTooMuch {
  IR_DEVICE void operator()(BlockOf<32> block) const {
    const BlockMemory<std::uint8_t, 1, struct First> first(block);
    const BlockMemory<std::uint8_t, max_block_memory_bytes, struct Second> second(block);
    first[0] = second[0];
  }
};

TEST(BlockMemory, HasALimit) {
  for (const Schedule& schedule : all_schedules()) {
    const Error error =
        expect_error(Errc::invalid_argument, [&] { run(schedule, AskForTooMuch{}, 2); });
    EXPECT_NE(
        std::string(error.what()).find("asks for 49152 more bytes of block memory and has 16"),
        std::string::npos)
        << error.what();
  }
}

/// Two fetches of one vector each. Notes what is there at several moments, and what becomes of them
/// when their sources change meanwhile.
struct FetchTwo {
  static constexpr int moments = 5;
  std::atomic<std::uint32_t>* seen;  ///< [moment][fetch]

  IR_DEVICE void operator()(BlockOf<32> block) const {
    if (!block.is_leader()) return;
    const BlockMemory<std::uint32_t, 8, struct Fetched> fetched(block);
    const auto note = [&](int moment) {
      for (const int fetch : {0, 1}) seen[2 * moment + fetch] = fetched[4 * fetch];
    };
    alignas(16) std::array<std::uint32_t, 8> source = {1, 1, 1, 1, 11, 11, 11, 11};
    Seat* const seat = block.seat();
    std::fill_n(fetched.data(), 8, 77u);
    for (const int fetch : {0, 1}) {
      target::fetch_vector(seat, target::block_address(fetched.data() + 4 * fetch),
                           source.data() + 4 * fetch);
      target::end_fetch(seat);
    }
    note(0);
    for (std::uint32_t& word : source) ++word;
    target::await_fetches<2>(seat);
    note(1);
    target::await_fetches<1>(seat);
    note(2);
    for (std::uint32_t& word : source) ++word;
    target::await_fetches<0>(seat);
    note(3);
    for (std::uint32_t& word : source) ++word;
    target::point(seat);
    target::await_fetches<0>(seat);
    note(4);
  }
};

using Seen = std::array<std::uint32_t, std::size_t{2} * FetchTwo::moments>;
Seen fetch_two(const Schedule& schedule) {
  std::array<std::atomic<std::uint32_t>, std::size_t{2} * FetchTwo::moments> seen = {};
  run(schedule, FetchTwo{seen.data()}, 1);
  Seen values = {};
  std::copy(seen.begin(), seen.end(), values.begin());
  return values;
}

TEST(VectorFetches, ArriveAtTheWait) {
  for (const bool split : {false, true})
    EXPECT_EQ(fetch_two({.split = split}),
              (Seen{unwritten, unwritten, unwritten, unwritten, 2, unwritten, 2, 13, 2, 13}))
        << split;
}

TEST(VectorFetches, ArriveAtAnyMomentBeforeTheWaitUnderARandomSchedule) {
  Seen at_once = {};  // in how many runs each had arrived, by moment
  int turned = 0;     // in how many the second one came first
  constexpr std::uint64_t seeds = 400;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Seen seen = fetch_two({.seed = seed});
    for (std::size_t i = 0; i < seen.size(); ++i) at_once[i] += seen[i] != unwritten ? 1 : 0;
    turned += seen[2] == unwritten && seen[3] != unwritten ? 1 : 0;
    EXPECT_TRUE(seen[4] == 1 || seen[4] == 2) << "seed " << seed << ": " << seen[4];
    EXPECT_TRUE(seen[7] >= 11 && seen[7] <= 13) << "seed " << seed << ": " << seen[7];
    EXPECT_EQ(seen[8], seen[6]) << "seed " << seed << ": not from after the wait";
    EXPECT_EQ(seen[9], seen[7]) << "seed " << seed << ": not from after the wait";
  }
  for (const std::size_t i : {0u, 1u, 2u, 3u, 5u}) {
    EXPECT_GT(at_once[i], seeds / 20) << "moment " << i / 2 << ", fetch " << i % 2;
    EXPECT_LT(at_once[i], seeds * 19 / 20) << "moment " << i / 2 << ", fetch " << i % 2;
  }
  EXPECT_GT(turned, 10);
}

/// Ends with a copy begun, whose source goes away.
struct LeaveFetch {
  std::atomic<std::uint32_t>* seen;

  IR_DEVICE void operator()(BlockOf<32> block) const {
    const BlockMemory<std::uint32_t, 4, struct Fetched> fetched(block);
    if (block.thread() > 0) return;
    target::point(block.seat());
    target::end_fetch(block.seat());
    target::await_fetches<0>(block.seat());
    *seen = fetched[0];
    alignas(16) const std::array<std::uint32_t, 4> source = {5, 5, 5, 5};
    target::fetch_vector(block.seat(), target::block_address(fetched.data()), source.data());
    target::end_fetch(block.seat());
  }
};

TEST(VectorFetches, OfABlockThatHasEndedAreForgotten) {
  for (const Schedule& schedule : all_schedules()) {
    SCOPED_TRACE(name(schedule));
    std::atomic<std::uint32_t> seen = 0;
    run(schedule, LeaveFetch{&seen}, 10);
    EXPECT_EQ(seen, unwritten);
  }
}

/// What a vector cannot be fetched to or from.
enum class Mistake { odd_source, odd_place, not_block_memory, beyond };

struct FetchWrongly {
  Mistake mistake;

  IR_DEVICE void operator()(BlockOf<32> block) const {
    const BlockMemory<std::uint32_t, 8, struct Fetched> fetched(block);
    alignas(16) std::array<std::uint32_t, 8> array = {};
    const int shift = mistake == Mistake::odd_place ? 1 : mistake == Mistake::beyond ? 8 : 0;
    std::uint32_t* const to =
        mistake == Mistake::not_block_memory ? array.data() : fetched.data() + shift;
    target::fetch_vector(block.seat(), target::block_address(to),
                         array.data() + (mistake == Mistake::odd_source ? 1 : 0));
  }
};

TEST(VectorFetches, RefuseWhatAGpuCannotFetch) {
  const auto message = [](const Schedule& schedule, Mistake mistake) {
    return std::string(expect_error(Errc::invalid_argument, [&] {
                         run(schedule, FetchWrongly{mistake}, 1);
                       }).what());
  };
  for (const Schedule& schedule : all_schedules()) {
    for (const Mistake mistake : {Mistake::odd_source, Mistake::odd_place})
      EXPECT_NE(message(schedule, mistake).find("multiples of 16"), std::string::npos);
    for (const Mistake mistake : {Mistake::not_block_memory, Mistake::beyond})
      EXPECT_NE(message(schedule, mistake).find("not the block's"), std::string::npos);
  }
}

}  // namespace
}  // namespace iridium
