#include "runtime/lane_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

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
  const std::size_t slots = (options.packet_bytes / sources + 7) / 8;
  EXPECT_GE(layout.packets, sizeof(LaneState) + blocks * sizeof(LaneBlock));
  EXPECT_GE(layout.scratch, layout.packets + 2 * sources * slots * 16 + sizeof(LanePieces));
  EXPECT_GE(layout.bytes, layout.scratch + 2 * options.scratch_bytes);
  for (const std::size_t part : {layout.packets, layout.scratch, layout.bytes})
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

/// The segments of ranks 0 to 7, each with a lane behind some other memory.
class Segments {
 public:
  static constexpr std::size_t offset = 3 * line;

  std::byte* lane_of(int rank) {
    return memory_.data()->bytes + static_cast<std::size_t>(rank) * stride() + offset;
  }
  LaneState& state_of(int rank) { return *reinterpret_cast<LaneState*>(lane_of(rank)); }
  std::size_t stride() const { return layout.bytes + 2 * offset; }

  const LaneLayout layout = lay_out_lane(3, options_of(2, 100, 100));

 private:
  struct alignas(line) Line {
    std::byte bytes[line];
  };
  std::vector<Line> memory_ = std::vector<Line>(8 * stride() / line);
};

LanePlace place_in(Segments& segments, const std::vector<int>& ranks, int place) {
  LanePlace where;
  where.ranks = ranks;
  where.place = place;
  where.base = segments.lane_of(ranks[static_cast<std::size_t>(place)]);
  where.stride = segments.stride();
  return where;
}

/// From every place to every other.
void expect_peers_found(Segments& segments, const std::vector<int>& ranks) {
  for (int place = 0; place < static_cast<int>(ranks.size()); ++place) {
    const Lane lane = make_lane(segments.layout, place_in(segments, ranks, place), "barrier");
    EXPECT_EQ(lane.peers().rank(), place);
    EXPECT_EQ(lane.peers().size(), static_cast<int>(ranks.size()));
    std::byte* const mine = segments.lane_of(ranks[static_cast<std::size_t>(place)]) + 5;
    for (int peer = 0; peer < lane.peers().size(); ++peer)
      EXPECT_EQ(lane.peers().at(mine, peer),
                segments.lane_of(ranks[static_cast<std::size_t>(peer)]) + 5)
          << "from place " << place << " to place " << peer;
  }
}

TEST(Lanes, OfEvenlySpacedRanksNeedNoTable) {
  for (const std::vector<int>& ranks : std::vector<std::vector<int>>{
           {0, 1, 2}, {6, 4, 2}, {3}, {5, 2}, {1, 4, 7}, {0, 1, 2, 3, 4, 5, 6, 7}}) {
    SCOPED_TRACE(testing::PrintToString(ranks));
    Segments segments;
    for (int rank = 0; rank < 8; ++rank)
      std::fill_n(segments.state_of(rank).ranks, max_team_size, std::uint8_t{99});
    expect_peers_found(segments, ranks);
  }
}

TEST(Lanes, OfOtherRanksReadTheTableInTheirState) {
  for (const std::vector<int>& ranks :
       std::vector<std::vector<int>>{{0, 1, 3}, {7, 5, 0}, {2, 0, 1}, {0, 1, 2, 4}}) {
    SCOPED_TRACE(testing::PrintToString(ranks));
    Segments segments;
    for (const int member : ranks)
      std::transform(ranks.begin(), ranks.end(), segments.state_of(member).ranks,
                     [](int rank) { return static_cast<std::uint8_t>(rank); });
    expect_peers_found(segments, ranks);
  }
}

TEST(Lanes, CarryWhatTheyAreGiven) {
  Segments segments;
  const std::vector<int> ranks = {1, 2, 3};
  LaneStatus status;
  LanePlace where = place_in(segments, ranks, 1);
  where.status = &status;
  where.timeout_ns = 123;
  where.call_id = 1;
  const Lane lane = make_lane(segments.layout, where, "barrier");
  EXPECT_EQ(lane.layout(), segments.layout);
  EXPECT_EQ(lane.max_blocks(), 2);
  EXPECT_EQ(lane.state(), &segments.state_of(2));
  EXPECT_EQ(lane.terms().status, &status);
  EXPECT_EQ(lane.terms().timeout_ns, 123u);
  where.call_id = 2;
  EXPECT_NE(make_lane(segments.layout, where, "barrier").terms().call_id, lane.terms().call_id);
}

TEST(Lanes, KnowWhatTheirLinkCanDo) {
  Segments segments;
  const std::vector<int> ranks = {0, 1, 2};
  const auto peers_over = [&](Link link, Placement placement = Placement::device) {
    LanePlace where = place_in(segments, ranks, 0);
    where.link = link;
    where.placement = placement;
    return make_lane(segments.layout, where, "barrier").peers();
  };
  EXPECT_TRUE(peers_over(Link::shared).are_on_one_device());
  EXPECT_FALSE(peers_over(Link::shared, Placement::host).are_on_one_device());
  for (const Link link : {Link::apart, Link::nvlink, Link::pcie_atomics, Link::pcie}) {
    EXPECT_FALSE(peers_over(link).are_on_one_device()) << name(link);
    EXPECT_EQ(peers_over(link).have_native_atomics(), link != Link::pcie) << name(link);
  }
}

TEST(Lanes, CutTheNameOfTheOperation) {
  Segments segments;
  const std::vector<int> ranks = {0, 1, 2};
  const std::string alphabet = "abcdefghijklmnopqrstuvwxyz";
  for (const std::size_t length : {0u, 1u, 22u, 23u, 24u, 26u}) {
    const Lane lane =
        make_lane(segments.layout, place_in(segments, ranks, 0), alphabet.substr(0, length));
    const OperationName& name = lane.terms().operation;
    const char* const end = std::find(std::begin(name.text), std::end(name.text), '\0');
    ASSERT_NE(end, std::end(name.text)) << "no 0 after " << length << " characters";
    EXPECT_EQ(std::string(std::begin(name.text), end),
              alphabet.substr(0, std::min<std::size_t>(length, max_operation_length)));
  }
}

/// From its first byte to the one after its last, counted from the lane's start.
struct Part {
  std::ptrdiff_t first;
  std::ptrdiff_t last;
};

std::vector<Part> parts_of(const Lane& lane) {
  std::vector<Part> parts;
  const auto add = [&](const void* at, std::size_t bytes) {
    const std::ptrdiff_t first = static_cast<const std::byte*>(at) - lane.terms().base;
    parts.push_back({first, first + static_cast<std::ptrdiff_t>(bytes)});
  };
  add(lane.state(), sizeof(LaneState));
  for (int block = 0; block < lane.max_blocks(); ++block) {
    add(&lane.block(block).counter, 8);
    for (const std::uint32_t& flag : lane.block(block).flags) add(&flag, 4);
  }
  for (const std::uint32_t parity : {0u, 1u}) {
    for (int source = 0; source < lane.layout().members; ++source)
      add(lane.packets(parity, source), lane.layout().packet_slots * 16);
    add(lane.scratch(parity), lane.layout().scratch_bytes);
  }
  return parts;
}

TEST(Lanes, HavePartsThatDoNotOverlap) {
  for (const int members : {1, 3, 8})
    for (const int blocks : {1, 5, 33})
      for (const std::size_t bytes : {1u, 128u, 1000u}) {
        SCOPED_TRACE(testing::Message()
                     << members << " members, " << blocks << " blocks, " << bytes << " bytes");
        const LaneLayout layout = lay_out_lane(members, options_of(blocks, bytes, bytes));
        EXPECT_GE(layout.scratch_bytes, bytes);
        EXPECT_GE(layout.packet_slots * 8 * static_cast<std::size_t>(members), bytes);
        std::vector<std::byte> memory(layout.bytes);
        LanePlace where;
        const std::vector<int> ranks = {0};
        where.ranks = ranks;
        where.base = memory.data();
        std::vector<Part> parts = parts_of(make_lane(layout, where, "barrier"));
        std::sort(parts.begin(), parts.end(),
                  [](const Part& a, const Part& b) { return a.first < b.first; });
        EXPECT_GE(parts.front().first, 0);
        for (std::size_t i = 1; i < parts.size(); ++i) EXPECT_LE(parts[i - 1].last, parts[i].first);
        EXPECT_LE(parts.back().last, static_cast<std::ptrdiff_t>(layout.bytes));
      }
}

}  // namespace
}  // namespace iridium
