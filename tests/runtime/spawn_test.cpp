#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "support/ranks.h"
#include "support/sanitizers.h"

namespace iridium::test {
namespace {

TEST(Spawn, RunsTheBodyOnEveryRank) {
  std::atomic<int> sum = 0;
  spawn(4, [&](Context& context) {
    EXPECT_EQ(context.size(), 4);
    sum += 1 << context.rank();
  });
  EXPECT_EQ(sum, 15);
}

TEST(Spawn, PassesOptionsOn) {
  spawn(2, {.heap_bytes = std::size_t{32} << 20},
        [](Context& context) { EXPECT_EQ(context.heap_bytes(), std::size_t{32} << 20); });
}

TEST(Spawn, ThrowsWhatWasThrownFirst) {
  const auto body = [](Context& context) {
    if (context.rank() == 2) throw std::logic_error("rank 2 has had enough");
    context.barrier();
  };
  EXPECT_THROW(
      {
        try {
          spawn(4, body);
        } catch (const std::logic_error& error) {
          EXPECT_STREQ(error.what(), "rank 2 has had enough");
          throw;
        }
      },
      std::logic_error);
}

TEST(Spawn, RefusesSizesThatCannotBe) {
  for (const int size : {0, -1, 65})
    expect_error(Errc::invalid_argument, [&] { spawn(size, [](Context&) {}); });
}

IR_SCENARIO(spawn_without_room_for_threads) {
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0;
  statm >> pages;
  const std::size_t in_use = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  constexpr std::size_t stack_bytes = std::size_t{16} << 20;
  ::pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, stack_bytes);
  require(::pthread_setattr_default_np(&attributes) == 0, "stacks of 16 MiB");
  ::rlimit limit = {};
  ::getrlimit(RLIMIT_AS, &limit);
  const ::rlim_t before = std::exchange(limit.rlim_cur, in_use + 5 * stack_bytes / 2);
  require(::setrlimit(RLIMIT_AS, &limit) == 0, "a limit");

  std::atomic<int> ran = 0;
  const Error error = require_error(Errc::system, {}, [&] { spawn(8, [&](Context&) { ++ran; }); });
  require(std::string(error.what()).find("spawn: no thread for rank 2 of 8: ") != std::string::npos,
          error.what());
  require(ran == 0, "no rank began");

  limit.rlim_cur = before;
  ::setrlimit(RLIMIT_AS, &limit);
  spawn(8, [&](Context& context) {
    context.barrier();
    ++ran;
  });
  require(ran == 8, "later there is room");
}
TEST(Spawn, SaysThatThereIsNoThreadForARank) {
  if (under_sanitizer) GTEST_SKIP() << "sanitizers need all of the address space";
  expect_all_ok(run_ranks(RankKind::processes, "spawn_without_room_for_threads", 1));
}

TEST(Spawn, CanRunInsideItself) {
  spawn(2, [](Context& outer) {
    std::atomic<int> inner_ranks = 0;
    spawn(2, [&](Context& inner) {
      inner.barrier();
      ++inner_ranks;
    });
    EXPECT_EQ(inner_ranks, 2);
    outer.barrier();
  });
}

TEST(Spawn, SixtyFourRanksIsTheMost) {
  spawn(64, {.heap_bytes = std::size_t{64} << 20},
        [](Context& context) { EXPECT_EQ(context.world().all_gather(context.rank())[63], 63); });
}

}  // namespace
}  // namespace iridium::test
