#include "backend/host/block_scheduler.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/ranks.h"

namespace iridium {
namespace {

using test::expect_error;

constexpr int split_threads = 4;

// Fibers are threads to ThreadSanitizer: what test kernels share is atomic.
using Numbers = std::vector<std::atomic<int>>;

std::vector<Schedule> all_schedules() {
  return {{}, {.split = true}, {.seed = 7}, {.split = true, .seed = 7}};
}

std::string name(const Schedule& schedule) {
  return std::string(schedule.split ? "split" : "whole") + " blocks, " +
         (schedule.seed ? "seed " + std::to_string(*schedule.seed) : "no seed");
}

template <class Kernel>
void run(BlockScheduler& scheduler, const Kernel& kernel, int blocks) {
  scheduler.run(detail::kernel_entry<Kernel, detail::ThisCompiler>(), &kernel, blocks);
}

Numbers numbers(int count) {
  return Numbers(static_cast<std::size_t>(count));
}

std::vector<int> values(const Numbers& numbers) {
  return {numbers.begin(), numbers.end()};
}

/// What happened, in order.
class Trace {
 public:
  void note(int event) { events_.at(static_cast<std::size_t>(count_.fetch_add(1))) = event; }
  std::vector<int> events() const { return {events_.begin(), events_.begin() + count_.load()}; }

 private:
  std::array<std::atomic<int>, 1024> events_ = {};
  std::atomic<int> count_ = 0;
};

/// Counts how often each thread of each block runs.
struct CountRuns {
  std::atomic<int>* runs;  ///< [block][thread]
  std::atomic<int>* wrong;

  IR_DEVICE void operator()(BlockOf<32> block) const {
    runs[block.index() * block.thread_count() + block.thread()] += 1;
    if (block.count() != wrong[0]) wrong[1] += 1;
    if (block.thread_count() != wrong[2]) wrong[3] += 1;
  }
};

void expect_each_block_once(BlockScheduler& scheduler, int blocks, int threads) {
  Numbers runs = numbers(blocks * threads);
  Numbers wrong = numbers(4);
  wrong[0] = blocks;
  wrong[2] = threads;
  run(scheduler, CountRuns{runs.data(), wrong.data()}, blocks);
  EXPECT_EQ(values(runs), std::vector<int>(runs.size(), 1)) << blocks << " blocks";
  EXPECT_EQ(wrong[1], 0) << "threads that were told another number of blocks";
  EXPECT_EQ(wrong[3], 0) << "threads that were told another number of threads";
}

/// Each block waits for the flag of the one `step` away, if there is one, and sets its own.
struct WaitForNeighbour {
  std::atomic<int>* flags;
  int step;

  IR_DEVICE void operator()(BlockOf<32> block) const {
    const int neighbour = block.index() + step;
    if (neighbour >= 0 && neighbour < block.count()) {
      int polls = 0;
      // Ended by the neighbour.
      for (bool again = false; flags[neighbour] == 0; again = true) {
        if (++polls > 10'000'000) throw std::runtime_error("a neighbour made no progress");
        block.pause(again);
      }
    }
    block.sync();
    if (block.is_leader()) flags[block.index()] += 1;
  }
};

/// Notes which stack each block ran on.
struct NoteStack {
  std::atomic<void*>* stacks;

  IR_DEVICE void operator()(BlockOf<32> block) const {
    stacks[block.index()] = __builtin_frame_address(0);
  }
};

/// Block `first` throws, then `second`; the others go on for a while.
struct Throw {
  std::atomic<int>* ended;
  int first;
  int second;

  IR_DEVICE void operator()(BlockOf<32> block) const {
    if (block.index() == first) throw std::runtime_error("the first");
    for (int i = 0; i < 20; ++i) block.pause(false);
    if (block.index() == second) throw std::runtime_error("the second");
    for (int i = 0; i < 20; ++i) block.pause(false);
    *ended += 1;
  }
};

template <class Kernel>
std::string what_comes_out(BlockScheduler& scheduler, const Kernel& kernel, int blocks) {
  try {
    run(scheduler, kernel, blocks);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(BlockScheduler, RunsEveryBlockOnce) {
  for (const Schedule& schedule : all_schedules()) {
    SCOPED_TRACE(name(schedule));
    BlockScheduler scheduler(schedule);
    for (const int blocks : {1, 3, 500, 0, 1})
      expect_each_block_once(scheduler, blocks, schedule.split ? split_threads : 1);
  }
}

TEST(BlockScheduler, LetsBlocksWaitForEachOther) {
  constexpr int blocks = 100;
  for (const Schedule& schedule : all_schedules())
    for (const int step : {1, -1}) {
      SCOPED_TRACE(name(schedule) + ", step " + std::to_string(step));
      BlockScheduler scheduler(schedule);
      Numbers flags = numbers(blocks);
      run(scheduler, WaitForNeighbour{flags.data(), step}, blocks);
      EXPECT_EQ(values(flags), std::vector<int>(blocks, 1));
    }
}

TEST(BlockScheduler, NeedsOneFiberForBlocksThatNeverPause) {
  std::vector<std::atomic<void*>> stacks(5000);
  BlockScheduler scheduler({});
  run(scheduler, NoteStack{stacks.data()}, static_cast<int>(stacks.size()));
  const std::set<void*> different(stacks.begin(), stacks.end());
  EXPECT_EQ(different.size(), 1u);
  EXPECT_FALSE(different.contains(nullptr));
}

/// Waits in vain.
struct WaitLong {
  int rounds;
  IR_DEVICE void operator()(BlockOf<32> block) const {
    for (int round = 0; round < rounds; ++round) block.pause(round > 0);
  }
};

/// How often this thread has slept.
long sleeps() {
  rusage usage = {};
  EXPECT_EQ(::getrusage(RUSAGE_THREAD, &usage), 0);
  return usage.ru_nvcsw;
}

TEST(BlockScheduler, SleepsWhenItsBlocksWaitForLong) {
  for (const int blocks : {1, 3}) {
    BlockScheduler scheduler({});
    const long before = sleeps();
    run(scheduler, WaitLong{6'000}, blocks);
    // Once in every round but those of the first few milliseconds.
    EXPECT_GT(sleeps() - before, 1'000) << blocks << " blocks";
  }
}

TEST(BlockScheduler, ThrowsWhatTheFirstBlockThrewWhenTheOthersHaveEnded) {
  constexpr int blocks = 6;
  for (const Schedule& schedule : all_schedules()) {
    SCOPED_TRACE(name(schedule));
    const int threads = schedule.split ? split_threads : 1;
    BlockScheduler scheduler(schedule);
    std::atomic<int> ended = 0;
    EXPECT_EQ(what_comes_out(scheduler, Throw{&ended, 2, -1}, blocks), "the first");
    EXPECT_EQ(ended, (blocks - 1) * threads);
    expect_each_block_once(scheduler, blocks, threads);
  }
  BlockScheduler in_order({});
  for (const int first : {0, 2, 5}) {
    std::atomic<int> ended = 0;
    EXPECT_EQ(what_comes_out(in_order, Throw{&ended, first, 3}, blocks), "the first");
    EXPECT_EQ(ended, blocks - 2);
  }
}

/// Threads come to each barrier at their own pace, and count who has not come when they leave it.
struct Meet {
  static constexpr int rounds = 20;
  std::atomic<int>* arrived;  ///< [block][round]
  std::atomic<int>* too_early;

  IR_DEVICE void operator()(BlockOf<32> block) const {
    for (int round = 0; round < rounds; ++round) {
      std::atomic<int>& here = arrived[block.index() * rounds + round];
      const int delay = (block.thread() + round) % block.thread_count() * 3;
      for (int i = 0; i < delay; ++i) block.pause(false);
      here += 1;
      block.sync();
      if (here != block.thread_count()) *too_early += 1;
    }
  }
};

TEST(SplitBlocks, MeetAtBarriers) {
  constexpr int blocks = 3;
  for (const Schedule& schedule : all_schedules()) {
    SCOPED_TRACE(name(schedule));
    BlockScheduler scheduler(schedule);
    Numbers arrived = numbers(blocks * Meet::rounds);
    std::atomic<int> too_early = 0;
    run(scheduler, Meet{arrived.data(), &too_early}, blocks);
    EXPECT_EQ(too_early, 0);
    EXPECT_EQ(values(arrived),
              std::vector<int>(arrived.size(), schedule.split ? split_threads : 1));
  }
}

/// Asks `any` for every set of threads that say true; counts those that hear true.
struct Any {
  std::atomic<int>* heard;  ///< [set]

  IR_DEVICE void operator()(BlockOf<32> block) const {
    for (int set = 0; set < 1 << split_threads; ++set)
      if (block.any((set >> block.thread() & 1) != 0)) heard[set] += 1;
  }
};

/// The same with words, from every source: counts those that get the source's word.
struct AnyWithWord {
  std::atomic<int>* heard;    ///< [set][source]
  std::atomic<int>* matched;  ///< [set][source]

  IR_DEVICE void operator()(BlockOf<32> block) const {
    for (int set = 0; set < 1 << split_threads; ++set)
      for (int source = 0; source < split_threads; ++source) {
        const int at = set * split_threads + source;
        const auto base = static_cast<std::uint64_t>(at) << 32 | 0x10;
        std::uint64_t word = base + static_cast<std::uint64_t>(block.thread());
        if (block.any((set >> block.thread() & 1) != 0, word, source)) heard[at] += 1;
        if (word == base + static_cast<std::uint64_t>(source)) matched[at] += 1;
        block.sync();
      }
  }
};

class SplitBlocksAsk : public testing::Test {
 protected:
  static constexpr int sets = 1 << split_threads;

  static std::vector<Schedule> schedules() {
    return {{.split = true}, {.split = true, .seed = 1}, {.split = true, .seed = 2}};
  }
  /// All hear true, but for the empty set.
  static std::vector<int> expected_for_any(int per_set) {
    std::vector<int> expected(static_cast<std::size_t>(sets * per_set), split_threads);
    std::fill_n(expected.begin(), per_set, 0);
    return expected;
  }
};

TEST_F(SplitBlocksAsk, WhetherAnyThreadSaysTrue) {
  for (const Schedule& schedule : schedules()) {
    SCOPED_TRACE(name(schedule));
    BlockScheduler scheduler(schedule);
    Numbers heard = numbers(sets);
    run(scheduler, Any{heard.data()}, 1);
    EXPECT_EQ(values(heard), expected_for_any(1));
  }
}

TEST_F(SplitBlocksAsk, ForTheWordOfOneThread) {
  for (const Schedule& schedule : schedules()) {
    SCOPED_TRACE(name(schedule));
    BlockScheduler scheduler(schedule);
    Numbers heard = numbers(sets * split_threads);
    Numbers matched = numbers(sets * split_threads);
    run(scheduler, AnyWithWord{heard.data(), matched.data()}, 1);
    EXPECT_EQ(values(heard), expected_for_any(split_threads));
    EXPECT_EQ(values(matched), std::vector<int>(matched.size(), split_threads));
  }
}

/// Asks `any` again and again, with and without a word; in some rounds one thread says true. Counts
/// wrong answers.
struct AnyInRounds {
  std::atomic<int>* wrong;

  IR_DEVICE void operator()(BlockOf<32> block) const {
    // True and false in every order of three.
    constexpr unsigned answers = 0b0001011100u;
    for (int round = 0; round < 40; ++round) {
      const bool expected = (answers >> round % 10 & 1) != 0;
      const bool mine = expected && block.thread() == round % split_threads;
      std::uint64_t word = 0;
      const bool heard = round % 3 == 0 ? block.any(mine, word) : block.any(mine);
      if (heard != expected) *wrong += 1;
      if (round % 7 == 0) block.sync();
    }
  }
};

TEST_F(SplitBlocksAsk, AnewInEveryRound) {
  for (const Schedule& schedule : schedules()) {
    SCOPED_TRACE(name(schedule));
    BlockScheduler scheduler(schedule);
    std::atomic<int> wrong = 0;
    run(scheduler, AnyInRounds{&wrong}, 2);
    EXPECT_EQ(wrong, 0);
  }
}

TEST(WholeBlocks, HearThemselves) {
  BlockScheduler scheduler({});
  Numbers heard = numbers(1 << split_threads);
  run(scheduler, Any{heard.data()}, 1);
  for (std::size_t set = 0; set < heard.size(); ++set)
    EXPECT_EQ(heard[set], static_cast<int>(set % 2)) << set;
}

/// One thread returns after `barriers` of them, while the others go to one more.
struct LeaveEarly {
  int thread;
  int barriers;

  IR_DEVICE void operator()(BlockOf<32> block) const {
    for (int i = 0; i < barriers; ++i) block.sync();
    if (block.thread() != thread) static_cast<void>(block.any(true));
  }
};

struct ThrowInOneThread {
  IR_DEVICE void operator()(BlockOf<32> block) const {
    if (block.thread() == 2) throw std::runtime_error("thread 2");
    block.sync();
  }
};

TEST(SplitBlocks, RefuseThatAThreadReturnsWhileOthersWait) {
  for (const Schedule& schedule :
       std::vector<Schedule>{{.split = true}, {.split = true, .seed = 3}}) {
    SCOPED_TRACE(name(schedule));
    BlockScheduler scheduler(schedule);
    for (int thread = 0; thread < split_threads; ++thread)
      for (const int barriers : {0, 1, 2}) {
        const Error error = expect_error(Errc::invalid_argument,
                                         [&] { run(scheduler, LeaveEarly{thread, barriers}, 2); });
        EXPECT_NE(std::string(error.what()).find("block barrier"), std::string::npos)
            << error.what();
        Numbers arrived = numbers(Meet::rounds);
        std::atomic<int> too_early = 0;
        run(scheduler, Meet{arrived.data(), &too_early}, 1);
        EXPECT_EQ(too_early, 0) << "after the error";
      }
  }
}

TEST(SplitBlocks, StartAnewAfterAnError) {
  for (const int barriers : {0, 1}) {
    BlockScheduler scheduler({.split = true});
    expect_error(Errc::invalid_argument, [&] { run(scheduler, LeaveEarly{0, barriers}, 1); });
    Numbers heard = numbers(1 << split_threads);
    run(scheduler, Any{heard.data()}, 1);
    EXPECT_EQ(heard[0], 0) << "an answer was left over from the block that failed";
  }
}

TEST(SplitBlocks, ThrowWhatTheThreadThrewAndNotThatOthersWaitedForIt) {
  BlockScheduler scheduler({.split = true});
  EXPECT_EQ(what_comes_out(scheduler, ThrowInOneThread{}, 3), "thread 2");
}

/// Notes each of its steps.
struct Walk {
  Trace* trace;
  int steps;

  IR_DEVICE void operator()(BlockOf<32> block) const {
    for (int step = 0; step < steps; ++step) {
      trace->note(block.index() * split_threads + block.thread());
      block.pause(false);
      block.sync();
    }
  }
};

std::vector<int> walk(const Schedule& schedule) {
  constexpr int blocks = 8;
  constexpr int steps = 6;
  BlockScheduler scheduler(schedule);
  Trace trace;
  run(scheduler, Walk{&trace, steps}, blocks);
  const auto threads = static_cast<std::size_t>(schedule.split ? split_threads : 1);
  EXPECT_EQ(trace.events().size(), blocks * steps * threads);
  return trace.events();
}

TEST(Turns, AreTheSameForTheSameSeed) {
  for (const bool split : {false, true})
    for (const std::uint64_t seed : {0u, 1u, 12345u})
      EXPECT_EQ(walk({.split = split, .seed = seed}), walk({.split = split, .seed = seed}))
          << "seed " << seed;
}

TEST(Turns, DifferForDifferentSeeds) {
  for (const bool split : {false, true}) {
    std::set<std::vector<int>> orders = {walk({.split = split})};
    for (std::uint64_t seed = 0; seed < 20; ++seed)
      orders.insert(walk({.split = split, .seed = seed}));
    EXPECT_EQ(orders.size(), 21u) << (split ? "split" : "whole");
  }
}

TEST(Turns, StartBlocksInOrderWithoutASeed) {
  for (const bool split : {false, true}) {
    std::vector<int> started;
    for (const int event : walk({.split = split})) {
      const int block = event / split_threads;
      if (std::find(started.begin(), started.end(), block) == started.end())
        started.push_back(block);
    }
    EXPECT_EQ(started, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  }
}

}  // namespace
}  // namespace iridium
