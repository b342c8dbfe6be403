#include "runtime/offset_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "support/ranks.h"

namespace iridium {
namespace {

constexpr std::size_t granule = OffsetAllocator::granule;

std::size_t granules_of(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + granule - 1) / granule);
}

/// A map with one entry per granule: the plainest allocator there is.
class Model {
 public:
  explicit Model(std::size_t bytes) : taken_(bytes / granule, false) {}

  void take(std::size_t offset, std::size_t bytes) {
    for (std::size_t i = 0; i < granules_of(bytes); ++i) {
      ASSERT_LT(offset / granule + i, taken_.size()) << "past the end";
      ASSERT_FALSE(taken_[offset / granule + i]) << "taken twice: granule " << offset / granule + i;
      taken_[offset / granule + i] = true;
    }
    bytes_of_[offset] = bytes;
  }

  void give_back(std::size_t offset) {
    for (std::size_t i = 0; i < granules_of(bytes_of_.at(offset)); ++i)
      taken_[offset / granule + i] = false;
    bytes_of_.erase(offset);
  }

  std::size_t free_bytes() const {
    return static_cast<std::size_t>(std::count(taken_.begin(), taken_.end(), false)) * granule;
  }

  std::size_t largest_free_block() const {
    std::size_t largest = 0;
    for (const auto& [start, count] : runs()) largest = std::max(largest, count);
    return largest * granule;
  }

  /// Where best fit with the lowest offset would put it; none when nowhere.
  std::optional<std::size_t> best_fit(std::size_t bytes, std::size_t alignment) const {
    std::optional<std::size_t> best;
    std::size_t best_count = std::numeric_limits<std::size_t>::max();
    for (const auto& [start, count] : runs()) {
      const std::size_t step = std::max(alignment, granule) / granule;
      const std::size_t aligned = (start + step - 1) / step * step;
      if (aligned + granules_of(bytes) <= start + count && count < best_count) {
        best = aligned * granule;
        best_count = count;
      }
    }
    return best;
  }

 private:
  /// Free runs as (first granule, number of granules).
  std::vector<std::pair<std::size_t, std::size_t>> runs() const {
    std::vector<std::pair<std::size_t, std::size_t>> found;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (taken_[i]) continue;
      if (i == 0 || taken_[i - 1])
        found.emplace_back(i, 1);
      else
        ++found.back().second;
    }
    return found;
  }

  std::vector<bool> taken_;
  std::map<std::size_t, std::size_t> bytes_of_;
};

struct Request {
  std::size_t bytes = 0;
  std::size_t alignment = 1;
};

Request random_request(std::mt19937& random) {
  constexpr std::size_t small = 4 * granule;
  constexpr std::size_t large = 64 * granule;
  const std::size_t limit = random() % 8 == 0 ? large : small;
  return {random() % (limit + 1), std::size_t{1} << (random() % 15)};
}

class RandomAllocations : public testing::TestWithParam<unsigned> {};

TEST_P(RandomAllocations, AgreeWithTheModelAndWithASecondInstance) {
  constexpr std::size_t total = 512 * granule;
  std::mt19937 random(GetParam());
  OffsetAllocator allocator(total);
  OffsetAllocator twin(total);
  Model model(total);
  std::vector<std::size_t> live;
  int exhausted = 0;
  for (int i = 0; i < 5000; ++i) {
    // Phases of growing and shrinking visit both a full and an empty heap.
    const bool growing = (i / 500) % 2 == 0;
    if (live.empty() || random() % 10 < (growing ? 7u : 3u)) {
      const Request request = random_request(random);
      const auto offset = allocator.allocate(request.bytes, request.alignment);
      ASSERT_EQ(offset, model.best_fit(request.bytes, request.alignment)) << "operation " << i;
      ASSERT_EQ(twin.allocate(request.bytes, request.alignment), offset);
      if (!offset) {
        ++exhausted;
        continue;
      }
      ASSERT_EQ(*offset % request.alignment, 0u);
      ASSERT_NO_FATAL_FAILURE(model.take(*offset, request.bytes));
      live.push_back(*offset);
    } else {
      std::swap(live[random() % live.size()], live.back());
      allocator.release(live.back());
      twin.release(live.back());
      model.give_back(live.back());
      live.pop_back();
    }
    ASSERT_EQ(allocator.free_bytes(), model.free_bytes()) << "operation " << i;
    ASSERT_EQ(allocator.largest_free_block(), model.largest_free_block()) << "operation " << i;
  }
  EXPECT_GT(exhausted, 0) << "the heap was never full: the test is too gentle";
  std::shuffle(live.begin(), live.end(), random);
  for (const std::size_t offset : live) allocator.release(offset);
  EXPECT_EQ(allocator.free_bytes(), total);
  EXPECT_EQ(allocator.largest_free_block(), total);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomAllocations, testing::Values(1u, 2u, 3u, 20240611u));

TEST(OffsetAllocators, StartWithOneBlockOfWholeGranules) {
  const OffsetAllocator allocator(10 * granule + granule - 1);
  EXPECT_EQ(allocator.total_bytes(), 10 * granule);
  EXPECT_EQ(allocator.free_bytes(), 10 * granule);
  EXPECT_EQ(allocator.largest_free_block(), 10 * granule);
}

TEST(OffsetAllocators, CanBeTooSmallForAnything) {
  OffsetAllocator allocator(granule - 1);
  EXPECT_EQ(allocator.total_bytes(), 0u);
  EXPECT_EQ(allocator.largest_free_block(), 0u);
  EXPECT_EQ(allocator.allocate(0, 1), std::nullopt);
  EXPECT_EQ(allocator.allocate(1, 1), std::nullopt);
}

TEST(OffsetAllocators, GiveZeroBytesAnAddressOfTheirOwn) {
  OffsetAllocator allocator(4 * granule);
  const auto first = allocator.allocate(0, 1);
  const auto second = allocator.allocate(0, 1);
  const auto third = allocator.allocate(1, 1);
  ASSERT_TRUE(first && second && third);
  EXPECT_NE(first, second);
  EXPECT_NE(second, third);
  EXPECT_EQ(allocator.free_bytes(), granule);
}

TEST(OffsetAllocators, TakeTheSmallestBlockThatFits) {
  OffsetAllocator allocator(100 * granule);
  // Holes of 8, 2 and 4 granules, walled off from each other and from the rest.
  std::vector<std::size_t> holes;
  for (const std::size_t size : {8u, 2u, 4u}) {
    holes.push_back(allocator.allocate(size * granule, 1).value());
    allocator.allocate(granule, 1).value();
  }
  for (const std::size_t hole : holes) allocator.release(hole);
  EXPECT_EQ(allocator.allocate(3 * granule, 1), holes[2]);
  EXPECT_EQ(allocator.allocate(2 * granule, 1), holes[1]);
  EXPECT_EQ(allocator.allocate(5 * granule, 1), holes[0]);
}

TEST(OffsetAllocators, TakeTheLowestOfEqualBlocks) {
  OffsetAllocator allocator(100 * granule);
  std::vector<std::size_t> holes;
  for (int i = 0; i < 3; ++i) {
    holes.push_back(allocator.allocate(2 * granule, 1).value());
    allocator.allocate(granule, 1).value();
  }
  for (const std::size_t hole : {holes[2], holes[0], holes[1]}) allocator.release(hole);
  for (const std::size_t hole : holes) EXPECT_EQ(allocator.allocate(2 * granule, 1), hole);
}

TEST(OffsetAllocators, PassOverASmallerBlockThatAlignmentSpoils) {
  OffsetAllocator allocator(64 * granule);
  allocator.allocate(granule, 1).value();
  const std::size_t hole = allocator.allocate(2 * granule, 1).value();
  allocator.allocate(granule, 1).value();
  allocator.release(hole);
  const auto aligned = allocator.allocate(2 * granule, 4 * granule);
  ASSERT_TRUE(aligned);
  EXPECT_EQ(*aligned, 4 * granule);
}

TEST(OffsetAllocators, KeepWhatAlignmentSkips) {
  OffsetAllocator allocator(16 * granule);
  allocator.allocate(granule, 1).value();
  EXPECT_EQ(allocator.allocate(granule, 8 * granule), 8 * granule);
  EXPECT_EQ(allocator.free_bytes(), 14 * granule);
  EXPECT_EQ(allocator.largest_free_block(), 7 * granule);
  EXPECT_EQ(allocator.allocate(7 * granule, 1), granule);
}

TEST(OffsetAllocators, RefuseMoreThanThereIs) {
  OffsetAllocator allocator(8 * granule);
  EXPECT_EQ(allocator.allocate(8 * granule + 1, 1), std::nullopt);
  EXPECT_EQ(allocator.allocate(std::numeric_limits<std::size_t>::max(), 1), std::nullopt);
  EXPECT_EQ(allocator.allocate(std::numeric_limits<std::size_t>::max() - granule, 1), std::nullopt);
  EXPECT_EQ(allocator.allocate(8 * granule, 1), 0u);
  EXPECT_EQ(allocator.largest_free_block(), 0u);
  EXPECT_EQ(allocator.allocate(0, 1), std::nullopt);
  allocator.release(0);
  EXPECT_EQ(allocator.allocate(8 * granule, 1), 0u);
}

TEST(OffsetAllocators, RefuseToReleaseWhatIsNotAllocated) {
  OffsetAllocator allocator(8 * granule);
  const std::size_t offset = allocator.allocate(2 * granule, 1).value();
  for (const std::size_t unknown : {offset + granule, offset + 1, 4 * granule, 100 * granule}) {
    const Error error =
        test::expect_error(Errc::invalid_argument, [&] { allocator.release(unknown); });
    EXPECT_NE(std::string(error.what()).find(std::to_string(unknown)), std::string::npos);
  }
  EXPECT_EQ(allocator.free_bytes(), 6 * granule);
  allocator.release(offset);
  test::expect_error(Errc::invalid_argument, [&] { allocator.release(offset); });
  EXPECT_EQ(allocator.free_bytes(), 8 * granule);
}

}  // namespace
}  // namespace iridium
