// All-to-all with parts of different sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "collectives/calls.h"
#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

/// The smallest: parts begin anywhere.
using Element = std::uint8_t;
constexpr Element poison = 0xa5;

/// How many elements every member sends to every other one: counts[from][to].
using Counts = std::vector<std::vector<std::size_t>>;

std::size_t largest(const Counts& counts) {
  std::size_t most = 0;
  for (const auto& row : counts) most = std::max(most, *std::ranges::max_element(row));
  return most;
}

Element element(int from, int to, std::size_t index) {
  return static_cast<Element>((static_cast<std::size_t>(from * 8 + to) * 31 + index) % 251);
}

/// Parts in any order, with gaps between them; part i has sizes[i] elements.
std::vector<ExchangePart> place_parts(const std::vector<std::size_t>& sizes,
                                      std::mt19937_64& random) {
  std::vector<std::size_t> order(sizes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  std::vector<ExchangePart> parts(sizes.size());
  std::size_t end = 0;
  for (const std::size_t i : order) {
    parts[i] = {end + random() % 3, sizes[i]};
    end = parts[i].first + sizes[i];
  }
  return parts;
}

class Exchange {
 public:
  Exchange(Context& context, const Team& team, std::size_t elements)
      : team_(team),
        memory_(context),
        stream_(context.make_stream()),
        in_(context.allocate<Element>(elements)),
        out_(context.allocate<Element>(elements)) {}

  void run(const Counts& counts, std::uint64_t seed, int blocks) {
    // Members place their parts as they like.
    std::mt19937_64 random(seed * 64 + static_cast<std::uint64_t>(team_.rank()));
    const auto me = static_cast<std::size_t>(team_.rank());
    std::vector<std::size_t> received;
    for (const auto& row : counts) received.push_back(row[me]);
    const ExchangeParts parts = {.sent = place_parts(counts[me], random),
                                 .received = place_parts(received, random),
                                 .max_count = largest(counts) + seed % 2};
    std::vector<Element> inputs(in_.size(), poison);
    std::vector<Element> expected(out_.size(), poison);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const auto other = static_cast<int>(i);
      for (std::size_t k = 0; k < parts.sent[i].count; ++k)
        inputs[parts.sent[i].first + k] = element(team_.rank(), other, k);
      for (std::size_t k = 0; k < parts.received[i].count; ++k)
        expected[parts.received[i].first + k] = element(other, team_.rank(), k);
    }
    memory_.write(in_, inputs);
    memory_.write(out_, std::vector<Element>(out_.size(), poison));
    all_to_all(stream_, team_, out_.data(), in_.data(), parts, {.blocks = blocks});
    stream_.synchronize();
    team_.check();
    require(memory_.read(out_) == expected,
            "the parts of seed " + std::to_string(seed) + " arrive, and nothing else changes");
  }

 private:
  Team team_;
  Memory memory_;
  Stream stream_;
  SymmetricArray<Element> in_;
  SymmetricArray<Element> out_;
};

Counts drawn_counts(std::size_t members, std::size_t below, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Counts counts(members, std::vector<std::size_t>(members));
  for (auto& row : counts)
    for (std::size_t& count : row) count = random() % 3 == 0 ? 0 : random() % below;
  return counts;
}

IR_SCENARIO(ragged_exchanges) {
  Context context(job);
  const auto members = static_cast<std::size_t>(job.size);
  const Team narrow = context.make_team(context.world().ranks(), narrow_lane);
  for (const Team& team : {context.world(), narrow}) {
    Exchange exchange(context, team, members * 1100);
    std::uint64_t seed = 1;
    for (const std::size_t below : {2u, 40u, 1000u})
      for (const int blocks : {0, 1, 3, 20})
        for (int repeat = 0; repeat < 3; ++repeat, ++seed)
          exchange.run(drawn_counts(members, below, seed), seed,
                       std::min(blocks, team.max_blocks()));
  }
}

IR_SCENARIO(silent_members) {
  Context context(job);
  const auto members = static_cast<std::size_t>(job.size);
  const Team narrow = context.make_team(context.world().ranks(), narrow_lane);
  Exchange exchange(context, narrow, members * 1100);
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Counts counts = drawn_counts(members, 900, seed);
    const std::size_t silent = seed % members;
    for (std::size_t other = 0; other < members; ++other)
      counts[silent][other] = counts[other][silent] = 0;
    exchange.run(counts, seed, 2);
    // Seeds decide whether there is room for an element that nobody sends.
    exchange.run(Counts(members, std::vector<std::size_t>(members)), seed, 2);
  }
}

IR_SCENARIO(captured_exchange) {
  Context context(job);
  Team team = context.world();
  const auto members = static_cast<std::size_t>(job.size);
  Memory memory(context);
  Stream stream = context.make_stream();
  auto in = context.allocate<Element>(members * members);
  auto out = context.allocate<Element>(members * members);
  stream.begin_capture();
  {
    // Member r sends r + 1 elements to everybody; the graph outlives the lists.
    ExchangeParts parts = {.sent = {}, .received = {}, .max_count = members};
    for (std::size_t other = 0; other < members; ++other) {
      parts.sent.push_back({other * members, static_cast<std::size_t>(job.rank) + 1});
      parts.received.push_back({other * members, other + 1});
    }
    all_to_all(stream, team, out.data(), in.data(), parts);
  }
  const Graph graph = stream.end_capture();
  for (int round = 1; round <= 20; ++round) {
    const auto value = [&](std::size_t rank) {
      return static_cast<Element>(round * 5 + static_cast<int>(rank));
    };
    memory.write(in, std::vector<Element>(in.size(), value(static_cast<std::size_t>(job.rank))));
    memory.write(out, std::vector<Element>(out.size(), poison));
    stream.launch(graph);
    stream.synchronize();
    team.check();
    const auto found = memory.read(out);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t from = i / members;
      require(found[i] == (i % members <= from ? value(from) : poison),
              "a replay exchanges what is there now");
    }
  }
}

class Exchanges : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(, Exchanges,
                         testing::Values(Ranks{RankKind::threads, 1}, Ranks{RankKind::threads, 3},
                                         Ranks{RankKind::threads, 5},
                                         Ranks{RankKind::processes, 3}),
                         [](const auto& test) { return name(test.param); });

TEST_P(Exchanges, OfRaggedPartsAreRight) {
  expect_all_ok(run_ranks(GetParam().kind, "ragged_exchanges", GetParam().size));
}
TEST_P(Exchanges, MayLeaveMembersOrEverybodyWithNothing) {
  expect_all_ok(run_ranks(GetParam().kind, "silent_members", GetParam().size));
}
TEST_P(Exchanges, CanBeReplayed) {
  expect_all_ok(run_ranks(GetParam().kind, "captured_exchange", GetParam().size));
}

}  // namespace
}  // namespace iridium::test
