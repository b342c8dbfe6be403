#include "collectives/drawn.h"

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(DrawnBits, DifferBetweenSeedsPlacesAndIndices) {
  std::set<std::uint64_t> seen;
  for (const std::uint64_t seed : {0u, 1u, 2u, 1000u})
    for (int place = 0; place < 8; ++place)
      for (std::size_t index = 0; index < 1000; ++index)
        seen.insert(drawn_bits(seed, place, index));
  EXPECT_EQ(seen.size(), 4u * 8 * 1000);
}

}  // namespace
}  // namespace iridium
