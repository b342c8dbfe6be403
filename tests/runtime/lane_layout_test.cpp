#include "runtime/lane_layout.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "support/ranks.h"

namespace iridium {
namespace {

constexpr std::size_t line = 128;

TeamOptions options_of(int max_blocks, std::size_t scratch_bytes, std::size_t packet_bytes) {
  TeamOptions options;
  options.max_blocks = max_blocks;
  options.scratch_bytes = scratch_bytes;
  options.packet_bytes = packet_bytes;
  return options;
}

void expect_refused(const TeamOptions& options, const std::string& option, const std::string& value,
                    const std::string& limit) {
  const Error error = test::expect_error(Errc::invalid_argument, [&] { lay_out_lane(2, options); });
  const std::string message = error.what();
  for (const std::string& part : {option, value, limit})
    EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
}

/// Every part has the room its readers expect before the next part begins.
void expect_room(int members, const TeamOptions& options) {
  const LaneLayout layout = lay_out_lane(members, options);
  const auto blocks = static_cast<std::size_t>(options.max_blocks);
  const auto sources = static_cast<std::size_t>(members);
  const std::size_t slots = (options.packet_bytes + 7) / 8;
  EXPECT_EQ(layout.state, 0u);
  EXPECT_GE(layout.counters, layout.state + sizeof(LaneState));
  EXPECT_GE(layout.flags, layout.counters + blocks * 8);
  EXPECT_GE(layout.packets, layout.flags + blocks * sources * 4);
  EXPECT_GE(layout.scratch, layout.packets + 2 * sources * slots * 16);
  EXPECT_GE(layout.bytes, layout.scratch + 2 * options.scratch_bytes);
  for (const std::size_t part :
       {layout.counters, layout.flags, layout.packets, layout.scratch, layout.bytes})
    EXPECT_EQ(part % line, 0u);
}

TEST(LaneLayouts, GiveEveryPartItsRoomOnLinesOfItsOwn) {
  for (const int members : {1, 2, 3, 7, 8, 64})
    for (const int blocks : {1, 2, 31, 33, 64, 1024})
      for (const std::size_t bytes : {0u, 1u, 127u, 128u, 129u, 4u << 20}) {
        SCOPED_TRACE(testing::Message()
                     << members << " members, " << blocks << " blocks, " << bytes << " bytes");
        expect_room(members, options_of(blocks, bytes, bytes));
      }
}

TEST(LaneLayouts, AreTheSameForTheSameInput) {
  EXPECT_EQ(lay_out_lane(4, {}), lay_out_lane(4, {}));
}

TEST(LaneLayouts, DoNotDependOnTheName) {
  TeamOptions named;
  named.name = "a team with a name";
  EXPECT_EQ(lay_out_lane(4, named), lay_out_lane(4, {}));
}

TEST(LaneLayouts, GrowWithMembersBlocksAndSizes) {
  const std::size_t bytes = lay_out_lane(4, options_of(64, 4096, 4096)).bytes;
  EXPECT_GT(lay_out_lane(5, options_of(64, 4096, 4096)).bytes, bytes);
  EXPECT_GT(lay_out_lane(4, options_of(128, 4096, 4096)).bytes, bytes);
  EXPECT_GT(lay_out_lane(4, options_of(64, 8192, 4096)).bytes, bytes);
  EXPECT_GT(lay_out_lane(4, options_of(64, 4096, 8192)).bytes, bytes);
}

TEST(LaneLayouts, AcceptTheLargestSizes) {
  const std::size_t tebibyte = std::size_t{1} << 40;
  expect_room(64, options_of(1024, tebibyte, tebibyte));
}

TEST(LaneLayouts, RefuseGridsOutOfRange) {
  expect_refused(options_of(0, 1, 1), "max_blocks", "is 0", "1 to 1024");
  expect_refused(options_of(-1, 1, 1), "max_blocks", "is -1", "1 to 1024");
  expect_refused(options_of(1025, 1, 1), "max_blocks", "is 1025", "1 to 1024");
}

TEST(LaneLayouts, RefuseAreasOverTheLimit) {
  const std::size_t over = (std::size_t{1} << 40) + 1;
  expect_refused(options_of(1, over, 1), "scratch_bytes", "1099511627777", "1099511627776");
  expect_refused(options_of(1, 1, over), "packet_bytes", "1099511627777", "1099511627776");
  expect_refused(options_of(1, ~std::size_t{0}, 1), "scratch_bytes", "18446744073709551615",
                 "1099511627776");
}

}  // namespace
}  // namespace iridium
