#include "support/ranks.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace iridium::test {
namespace {

IR_SCENARIO(does_nothing) {}

class MostRanks : public testing::Test {
 protected:
  MostRanks() { ::unsetenv("IRIDIUM_TEST_MOST_RANKS"); }
  ~MostRanks() override { ::unsetenv("IRIDIUM_TEST_MOST_RANKS"); }

  static void limit(const char* most) { ::setenv("IRIDIUM_TEST_MOST_RANKS", most, 1); }
};

TEST_F(MostRanks, RunAndMoreAreSkipped) {
  limit("2");
  expect_all_ok(run_ranks(RankKind::threads, "does_nothing", 2));
  expect_all_ok(run_ranks(RankKind::processes, "does_nothing", 1));
  for (const RankKind kind : {RankKind::threads, RankKind::processes}) {
    testing::TestPartResultArray found;
    bool has_ended = false;
    {
      const testing::ScopedFakeTestPartResultReporter reporter(&found);
      try {
        run_ranks(kind, "does_nothing", 3);
      } catch (const testing::AssertionException&) {
        has_ended = true;
      }
    }
    EXPECT_TRUE(has_ended);
    ASSERT_EQ(found.size(), 1);
    EXPECT_TRUE(found.GetTestPartResult(0).skipped());
    EXPECT_EQ(std::string(found.GetTestPartResult(0).summary()),
              "3 ranks; IRIDIUM_TEST_MOST_RANKS is 2");
  }
}

TEST_F(MostRanks, MustBeANumber) {
  for (const char* text : {"", "0", "many"}) {
    limit(text);
    EXPECT_THROW(run_ranks(RankKind::threads, "does_nothing", 1), std::runtime_error) << text;
  }
}

TEST_F(MostRanks, AreAnyNumberWhereNothingIsSaid) {
  expect_all_ok(run_ranks(RankKind::threads, "does_nothing", 9));
}

}  // namespace
}  // namespace iridium::test
