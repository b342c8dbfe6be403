#include "base/random.h"

#include <gtest/gtest.h>

#include <set>

namespace iridium {
namespace {

TEST(Random, IdsAreDistinctAndNeverZero) {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random_id());
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_FALSE(seen.contains(0));
}

TEST(Random, IdsUseAllTheirBits) {
  std::uint64_t ever_set = 0;
  std::uint64_t ever_clear = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t id = random_id();
    ever_set |= id;
    ever_clear |= ~id;
  }
  EXPECT_EQ(ever_set, ~std::uint64_t{0});
  EXPECT_EQ(ever_clear, ~std::uint64_t{0});
}

TEST(Random, TokensAreDistinctAndHexadecimal) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string token = random_token();
    EXPECT_EQ(token.size(), 32u);
    EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos) << token;
    seen.insert(token);
  }
  EXPECT_EQ(seen.size(), 1000u);
}

}  // namespace
}  // namespace iridium
