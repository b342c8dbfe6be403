#include "cli/peer_meter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "iridium/bootstrap.h"
#include "iridium/errors.h"

namespace iridium::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr std::size_t full = 4u << 20;
constexpr int barriers = 2;

/// The transfers of one rank, really made, over a link whose time is made up.
struct FakeLink {
  double gbps = 10;
  Microseconds look = {};  ///< passes whenever somebody looks at the clock
  int looks = 0;
  Clock::time_point now = {};
  std::vector<std::size_t> moved = {};  ///< bytes of each transfer

  PeerTransfer transfer(const PeerTransfer& real) {
    return [this, real](const Context& context, StreamRef& stream, const Team& team,
                        const PeerWords& words) {
      const std::size_t bytes = words.count * sizeof(std::uint64_t);
      moved.push_back(bytes);
      pass(Microseconds(static_cast<double>(bytes) / gbps / 1000));
      real(context, stream, team, words);
    };
  }
  void pass(Microseconds time) { now += std::chrono::duration_cast<Clock::duration>(time); }
  Microseconds passed() const { return now - Clock::time_point(); }
  std::ptrdiff_t count(std::size_t bytes) const { return std::ranges::count(moved, bytes); }
};

/// All pairs of `links.size()` ranks in both directions, as the last rank hears of them. `change`
/// prepares every rank's meter.
std::vector<PeerFigures> measure(
    std::vector<FakeLink>& links, const std::function<void(int rank, PeerMeterOptions&)>& change =
                                      [](int, PeerMeterOptions&) {}) {
  std::vector<PeerFigures> found;
  const int size = static_cast<int>(links.size());
  const ContextOptions context_options = {
      .backend = BackendKind::host, .heap_bytes = std::size_t{64} << 20, .checked = true};
  spawn(size, context_options, [&](Context& context) {
    FakeLink& link = links[static_cast<std::size_t>(context.rank())];
    PeerMeterOptions options = {.bytes = full, .barriers = barriers};
    change(context.rank(), options);
    options.store = link.transfer(options.store);
    options.load = link.transfer(options.load);
    options.now = [&link] {
      ++link.looks;
      link.pass(link.look);
      return link.now;
    };
    PeerMeter meter(context, options);
    for (int one = 0; one < size; ++one)
      for (int other = one + 1; other < size; ++other)
        for (const PeerFigures& figures : meter.measure(one, other))
          if (context.rank() == size - 1) found.push_back(figures);
  });
  return found;
}

/// After the transfer, changes a word on whoever has received it.
PeerTransfer with_a_wrong_word(const PeerTransfer& real, std::size_t index, bool is_mine) {
  return [=](const Context& context, StreamRef& stream, const Team& team, const PeerWords& words) {
    real(context, stream, team, words);
    stream.synchronize();
    if (words.count <= index) return;
    const int receiver =
        is_mine ? context.rank() : team.ranks()[static_cast<std::size_t>(words.place)];
    context.at(words.to, receiver)[index] = 0xbad;
  };
}

TEST(PeerMeter, MeasuresFullTransfersInRounds) {
  std::vector<FakeLink> links = {{.gbps = 10}, {.gbps = 5}};
  const auto found = measure(links);
  ASSERT_EQ(found.size(), 2u);
  for (const PeerFigures& pair : found) {
    EXPECT_EQ(pair.from, pair.to == 1 ? 0 : 1);
    EXPECT_EQ(pair.link, Link::shared);
    EXPECT_TRUE(pair.is_well()) << pair.wrong << pair.error;
    EXPECT_NEAR(pair.store_gbps, pair.from == 0 ? 10 : 5, 0.1);
    EXPECT_NEAR(pair.load_gbps, pair.from == 0 ? 10 : 5, 0.1);
  }
  const PeerMeterOptions defaults;
  for (const FakeLink& link : links)
    EXPECT_EQ(link.count(full), 2 * (2 + defaults.rounds * defaults.repeats));
}

TEST(PeerMeter, MeasuresBarriers) {
  std::vector<FakeLink> links(2);
  for (FakeLink& link : links) link.look = std::chrono::microseconds(10);
  const auto found = measure(links);
  ASSERT_EQ(found.size(), 2u);
  for (const PeerFigures& pair : found) EXPECT_NEAR(pair.barrier_us, 10.0 / barriers, 0.01);
  const int looks = links[0].looks;

  for (FakeLink& link : links) link = {.look = std::chrono::milliseconds(21)};
  EXPECT_EQ(measure(links).size(), 2u);
  // By stores and by loads, two transfers; then barriers once.
  EXPECT_EQ(links[0].looks, 2 * (2 * 2 + 1));
  EXPECT_GT(looks, links[0].looks);
}

TEST(PeerMeter, MeasuresCrawlingPairsOnceWithLittle) {
  // 50 MB/s: a full transfer of 32 MiB would take two thirds of a second.
  std::vector<FakeLink> links = {{.gbps = 0.05}, {.gbps = 10}, {.gbps = 10}};
  const auto found = measure(links);
  ASSERT_EQ(found.size(), 6u);
  for (const PeerFigures& pair : found) {
    EXPECT_TRUE(pair.is_well()) << pair.wrong << pair.error;
    EXPECT_NEAR(pair.store_gbps, pair.from == 0 ? 0.05 : 10, 0.1);
    EXPECT_NEAR(pair.load_gbps, pair.from == 0 ? 0.05 : 10, 0.1);
  }
  EXPECT_NEAR(found[0].store_gbps, 0.05, 0.001);
  // To two peers, by stores and by loads, twice each: 16 and 256 KiB.
  EXPECT_EQ(links[0].moved.size(), 2u * 2 * 2 * 2);
  EXPECT_EQ(std::ranges::max(links[0].moved), 256u << 10);
  EXPECT_LT(links[0].passed(), std::chrono::milliseconds(50));
  EXPECT_GT(links[1].count(full), 0) << "others are measured in full";
}

TEST(PeerMeter, DoesNotTakeAPairThatStartsSlowlyForACrawlingOne) {
  std::vector<FakeLink> links(2);
  const auto found = measure(links, [&](int rank, PeerMeterOptions& options) {
    FakeLink& link = links[static_cast<std::size_t>(rank)];
    options.store = [&link](const Context& context, StreamRef& stream, const Team& team,
                            const PeerWords& words) {
      if (link.moved.size() == 1) link.pass(std::chrono::seconds(1));
      store_to_peer(context, stream, team, words);
    };
  });
  for (const PeerFigures& pair : found) EXPECT_NEAR(pair.store_gbps, 10, 0.1);
}

TEST(PeerMeter, StopsWhereFullTransfersAreSlowThoughSmallOnesAreNot) {
  std::vector<FakeLink> links(2);
  const auto found = measure(links, [&](int rank, PeerMeterOptions& options) {
    FakeLink& link = links[static_cast<std::size_t>(rank)];
    options.load = [&link](const Context& context, StreamRef& stream, const Team& team,
                           const PeerWords& words) {
      if (link.moved.back() == full) link.pass(std::chrono::seconds(1));
      load_from_peer(context, stream, team, words);
    };
  });
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(found[0].load_gbps, 0.0042, 0.0001);
  EXPECT_LT(links[0].passed(), std::chrono::milliseconds(2100));
}

TEST(PeerMeter, NamesWordsThatAreWrong) {
  std::vector<FakeLink> links(3);
  const auto found = measure(links, [](int rank, PeerMeterOptions& options) {
    if (rank == 0) options.store = with_a_wrong_word(options.store, 5, false);
    if (rank == 2) options.load = with_a_wrong_word(options.load, full / 8 - 1, true);
  });
  ASSERT_EQ(found.size(), 6u);
  for (const PeerFigures& pair : found) {
    EXPECT_EQ(pair.wrong.empty(), pair.from == 1) << pair.wrong;
    EXPECT_EQ(pair.error, "");
    EXPECT_GT(pair.store_gbps, 0);
    EXPECT_GT(pair.load_gbps, 0);
  }
  EXPECT_TRUE(
      found[0].wrong.starts_with("word 5 of 524288 that rank 0 stored to rank 1 is 0xbad, not 0x"))
      << found[0].wrong;
  EXPECT_EQ(found[3].from, 2);
  EXPECT_EQ(found[3].to, 0);
  EXPECT_TRUE(found[3].wrong.starts_with(
      "word 524287 of 524288 that rank 2 loaded from rank 0 is 0xbad, not 0x"))
      << found[3].wrong;
}

TEST(PeerMeter, NoticesWordsThatDoNotArrive) {
  std::vector<FakeLink> links(2);
  const auto found = measure(links, [](int rank, PeerMeterOptions& options) {
    const auto nothing = [](const Context&, StreamRef&, const Team&, const PeerWords&) {};
    if (rank == 0) options.store = nothing;
    if (rank == 1) options.load = nothing;
  });
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].wrong.starts_with("word 0 of 524288 that rank 0 stored to rank 1 is 0x0,"))
      << found[0].wrong;
  EXPECT_TRUE(found[1].wrong.starts_with("word 0 of 524288 that rank 1 loaded from rank 0 is 0x0,"))
      << found[1].wrong;
}

TEST(PeerMeter, ReportsPairsThatCannotBeMeasuredAndMeasuresTheOthers) {
  std::vector<FakeLink> links(3);
  const auto found = measure(links, [](int rank, PeerMeterOptions& options) {
    if (rank == 1)
      options.load = [](const Context&, StreamRef&, const Team&, const PeerWords&) {
        throw Error(Errc::stream_failed, "no way there");
      };
  });
  ASSERT_EQ(found.size(), 6u);
  for (const PeerFigures& pair : found) {
    EXPECT_EQ(pair.link, Link::shared);
    EXPECT_EQ(pair.wrong, "");
    EXPECT_EQ(pair.error, pair.from == 1 ? "rank 1: stream_failed: no way there" : "");
    EXPECT_GT(pair.store_gbps, 0) << "what came before the failure is kept";
    EXPECT_EQ(pair.load_gbps == 0, pair.from == 1);
  }
}

TEST(PeerMeter, MeasuresOtherPairsWhenATeamHasFailed) {
  std::vector<FakeLink> links(3);
  const auto found = measure(links, [](int rank, PeerMeterOptions& options) {
    if (rank == 0)
      options.load = [](const Context& context, StreamRef& stream, const Team& team,
                        const PeerWords& words) {
        if (team.ranks()[1] != 1) return load_from_peer(context, stream, team, words);
        // Checked mode fails the team of ranks 0 and 1 for it.
        load_from_peer(context, stream, team, {words.to, nullptr, words.count, words.place});
      };
  });
  ASSERT_EQ(found.size(), 6u);
  for (const PeerFigures& pair : found) {
    const bool is_of_failed_team = pair.from + pair.to == 1;
    EXPECT_EQ(pair.link, Link::shared);
    EXPECT_EQ(pair.error.empty(), !is_of_failed_team) << pair.error;
    EXPECT_EQ(pair.load_gbps == 0, is_of_failed_team);
  }
  EXPECT_NE(found[0].error.find("at 0x0 in load_from_peer"), std::string::npos) << found[0].error;
}

TEST(LeastGbps, DependsOnTheLink) {
  EXPECT_EQ(least_gbps(Link::nvlink), 20);
  EXPECT_EQ(least_gbps(Link::pcie_atomics), 4);
  EXPECT_EQ(least_gbps(Link::pcie), 4);
  EXPECT_EQ(least_gbps(Link::shared), 0);
  EXPECT_EQ(least_gbps(Link::apart), 0);
}

}  // namespace
}  // namespace iridium::cli
