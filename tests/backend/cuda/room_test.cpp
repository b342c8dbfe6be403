#include "backend/cuda/room.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace iridium {
namespace {

constexpr SharedGpu hopper(int ranks, int processors = 132) {
  return {.processors = processors, .major = 9, .ranks = ranks};
}

/// Where waiting blocks do most harm: spread evenly over the groups of processors. Whether one of
/// the groups still has room for a cluster.
bool cluster_finds_room(const std::vector<int>& groups, int cluster, int waiting) {
  std::vector<int> free = groups;
  for (; waiting > 0; --waiting) {
    const auto most = std::max_element(free.begin(), free.end());
    if (*most == 0) return false;
    --*most;
  }
  return *std::max_element(free.begin(), free.end()) >= cluster;
}

TEST(Room, WaitingBlocksLeaveAClusterItsProcessors) {
  const std::vector<int> groups = {16, 16, 16, 16, 16, 16, 18, 18};
  for (int ranks = 2; ranks <= 16; ++ranks)
    for (const int lanes : {1, 2, 3}) {
      const int blocks = blocks_beside_compute(hopper(ranks), lanes);
      const int others = ranks * lanes - 1;
      EXPECT_TRUE(cluster_finds_room(groups, 8, others * blocks)) << ranks;
      EXPECT_LT(hopper(ranks).processors - processors_for_compute(hopper(ranks)),
                others * (blocks + 1))
          << ranks << " ranks could have more";
    }
}

TEST(Room, IsNeededByNobodyWhoHasAGpu) {
  EXPECT_EQ(blocks_beside_compute(hopper(1), 1), 132);
}

TEST(Room, OnAnH200) {
  EXPECT_EQ(processors_for_compute(hopper(8)), 57);
  EXPECT_EQ(blocks_beside_compute(hopper(2), 1), 75);
  EXPECT_EQ(blocks_beside_compute(hopper(4), 1), 25);
  EXPECT_EQ(blocks_beside_compute(hopper(8), 1), 10);
  EXPECT_EQ(blocks_beside_compute(hopper(8), 2), 5);
}

TEST(Room, FollowsTheShareOfTheProcessorsThatMpsGives) {
  EXPECT_EQ(blocks_beside_compute(hopper(8, 98), 1), 5);
  EXPECT_EQ(resident_blocks(hopper(8, 98), 2, 2), 12);
}

TEST(Room, IsNotThereForTooManyGridsOrOnTooSmallAGpu) {
  EXPECT_EQ(blocks_beside_compute(hopper(8), 9), 1);
  EXPECT_EQ(blocks_beside_compute(hopper(8), 10), 0);
  EXPECT_EQ(blocks_beside_compute(hopper(8, 14), 1), 0);
  EXPECT_EQ(blocks_beside_compute(hopper(2, 4), 1), 0);
}

TEST(Room, IsOneProcessorWhereThereAreNoClusters) {
  const SharedGpu ampere = {.processors = 108, .major = 8, .ranks = 8};
  EXPECT_EQ(processors_for_compute(ampere), 1);
  EXPECT_EQ(blocks_beside_compute(ampere, 1), 15);
}

TEST(Room, IsSharedByAllLanesThatRunAtOnce) {
  EXPECT_EQ(resident_blocks(hopper(8), 2, 2), 16);
  EXPECT_EQ(resident_blocks(hopper(8), 2, 1), 33);
  EXPECT_EQ(resident_blocks(hopper(2), 2, 2), 66);
}

}  // namespace
}  // namespace iridium
