#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "support/ranks.h"

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
