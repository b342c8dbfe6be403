#include "operations/random_elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace iridium {
namespace {

TEST(Ranges, AreAllElementsOnce) {
  for (const int members : {1, 3, 64})
    for (const std::size_t count : {0u, 1u, 1000u, (4u << 20) + 3}) {
      std::vector<std::uint8_t> visits(count);
      for_each_range(count, members, [&](std::size_t first, std::size_t end) {
        for (std::size_t i = first; i < end; ++i) ++visits[i];
      });
      EXPECT_TRUE(std::ranges::all_of(visits, [](std::uint8_t times) { return times == 1; }))
          << count << " elements, " << members << " members";
    }
}

TEST(RandomBits, DifferBetweenSeedsPlacesAndIndices) {
  std::set<std::uint64_t> seen;
  for (const std::uint64_t seed : {0u, 1u, 2u, 1000u})
    for (int place = 0; place < 8; ++place)
      for (std::size_t index = 0; index < 1000; ++index)
        seen.insert(random_bits(seed, place, index));
  EXPECT_EQ(seen.size(), 4u * 8 * 1000);
}

TEST(RandomFractions, HaveTheDigitsAskedFor) {
  for (const int digits : {4, 8, 11, 24}) {
    double least = 0;
    double most = 0;
    for (std::size_t index = 0; index < 10'000; ++index) {
      const double value = random_fraction(3, 1, index, digits);
      EXPECT_EQ(std::ldexp(value, digits), std::round(std::ldexp(value, digits)));
      least = std::min(least, value);
      most = std::max(most, value);
    }
    EXPECT_GE(least, -1);
    EXPECT_LT(least, -0.99);
    EXPECT_LE(most, 1);
    EXPECT_GT(most, 0.93);
  }
  // Not coarser than asked for.
  int odd = 0;
  for (std::size_t index = 0; index < 1000; ++index)
    if (std::fmod(std::ldexp(random_fraction(3, 1, index, 24), 24), 2) != 0) ++odd;
  EXPECT_GT(odd, 400);
  EXPECT_LT(odd, 600);
}

TEST(RandomElements, AreFractionsOrAnyInteger) {
  double sum = 0;
  std::set<std::uint8_t> bytes;
  for (std::size_t index = 0; index < 10'000; ++index) {
    const float value = random_element<float>(5, 0, index);
    EXPECT_LE(std::abs(value), 1);
    sum += value;
    bytes.insert(random_element<std::uint8_t>(5, 0, index));
  }
  EXPECT_LT(std::abs(sum), 400);
  EXPECT_EQ(bytes.size(), 256u);
}

}  // namespace
}  // namespace iridium
