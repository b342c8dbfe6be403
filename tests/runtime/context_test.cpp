#include "iridium/context.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <numeric>

#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

class ContextTest : public ::testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ContextTest, ::testing::ValuesIn(all_ranks()),
                         [](const auto& test) { return name(test.param); });

IR_SCENARIO(knows_what_it_is) {
  Context context(job);
  require(context.rank() == job.rank && context.size() == job.size, "rank and size are the job's");
  require(context.stride() >= context.heap_bytes(), "segments do not overlap");
  const Team world = context.world();
  require(world.rank() == job.rank && world.size() == job.size, "the world has all ranks");
}

TEST_P(ContextTest, KnowsWhatItIs) {
  expect_all_ok(run_ranks(GetParam().kind, "knows_what_it_is", GetParam().size));
}

IR_SCENARIO(writes_into_peers) {
  Context context(job);
  const auto size = static_cast<std::size_t>(job.size);
  auto array = context.allocate<std::uint64_t>(size);
  Memory memory(context);
  for (std::uint64_t round = 1; round <= 20; ++round) {
    for (int peer = 0; peer < job.size; ++peer)
      memory.write(array.at(peer) + job.rank,
                   round * 1000 + static_cast<std::uint64_t>(100 * job.rank + peer));
    context.barrier();
    const auto values = memory.read(array);
    for (std::size_t peer = 0; peer < size; ++peer)
      require(values[peer] == round * 1000 + 100 * peer + static_cast<std::uint64_t>(job.rank),
              "a peer's value of this round");
    context.barrier();
  }
}

TEST_P(ContextTest, RanksWriteIntoEachOthersMemory) {
  expect_all_ok(run_ranks(GetParam().kind, "writes_into_peers", GetParam().size));
}

IR_SCENARIO(translates_pointers) {
  Context context(job);
  auto array = context.allocate<int>(64);
  Memory memory(context);
  memory.write(array.data() + 10, job.rank);
  context.barrier();
  for (int peer = 0; peer < job.size; ++peer) {
    require(memory.read(context.at(array.data() + 10, peer)) == peer,
            "at() finds the peer's element");
    require(context.at(array.data(), peer) == array.at(peer),
            "at() of the context and of the array agree");
    const std::ptrdiff_t distance =
        reinterpret_cast<std::byte*>(array.at(peer)) - reinterpret_cast<std::byte*>(array.data());
    require(distance == (peer - job.rank) * static_cast<std::ptrdiff_t>(context.stride()),
            "one multiply-add");
  }
  context.barrier();
  int elsewhere = 0;
  require_error(Errc::invalid_argument, {}, [&] { context.at(&elsewhere, 0); });
  require_error(Errc::invalid_argument, {}, [&] { context.at(array.data(), job.size); });
  require_error(Errc::invalid_argument, {}, [&] { array.at(-1); });
  context.barrier();
}

TEST_P(ContextTest, TranslatesPointers) {
  expect_all_ok(run_ranks(GetParam().kind, "translates_pointers", GetParam().size));
}

IR_SCENARIO(exchanges_host_values) {
  Context context(job);
  Team world = context.world();
  for (int round = 0; round < 10; ++round) {
    const auto all = world.all_gather(round * 100 + job.rank);
    require(all.size() == static_cast<std::size_t>(job.size), "one value per rank");
    for (int rank = 0; rank < job.size; ++rank)
      require(all[static_cast<std::size_t>(rank)] == round * 100 + rank, "values in rank order");
    const int root = round % job.size;
    require(world.broadcast(1000 * round + job.rank, root) == 1000 * round + root,
            "the root's value");
  }
  std::vector<std::byte> large(Team::max_host_bytes, static_cast<std::byte>(job.rank));
  world.broadcast_bytes(large, job.size - 1);
  require(large.back() == static_cast<std::byte>(job.size - 1), "the largest broadcast");
}

TEST_P(ContextTest, ExchangesHostValues) {
  expect_all_ok(run_ranks(GetParam().kind, "exchanges_host_values", GetParam().size));
}

IR_SCENARIO(refuses_bad_host_values) {
  Context context(job);
  Team world = context.world();
  std::vector<std::byte> too_large(Team::max_host_bytes + 1);
  std::vector<std::byte> all(too_large.size() * static_cast<std::size_t>(job.size));
  require_error(Errc::invalid_argument, {}, [&] { world.broadcast_bytes(too_large, 0); });
  require_error(Errc::invalid_argument, {}, [&] { world.all_gather_bytes(too_large, all); });
  require_error(Errc::invalid_argument, {}, [&] { world.broadcast(1, job.size); });
  require_error(Errc::invalid_argument, {}, [&] { world.broadcast(1, -1); });
  require_error(Errc::invalid_argument, {}, [&] {
    world.all_gather_bytes(std::span(too_large).first(8), std::span(all).first(7));
  });
  context.barrier();
}

TEST_P(ContextTest, RefusesBadHostValuesBeforeAnythingIsSent) {
  expect_all_ok(run_ranks(GetParam().kind, "refuses_bad_host_values", GetParam().size));
}

class ContextOfTwo : public ::testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ContextOfTwo, ::testing::ValuesIn(both_kinds(2)),
                         [](const auto& test) { return name(test.param); });

IR_SCENARIO(two_contexts_at_once) {
  Context first(job, {.name = "first"});
  Context second(job, {.name = "second"});
  auto a = first.allocate<int>(4);
  auto b = second.allocate<int>(4);
  Memory memory(first);
  memory.write(a.at(1 - job.rank), 10 + job.rank);
  memory.write(b.at(1 - job.rank), 20 + job.rank);
  second.barrier();
  first.barrier();
  require(memory.read(a.data()) == 11 - job.rank && memory.read(b.data()) == 21 - job.rank,
          "each context has its own memory");
  require(!first.is_symmetric(b.data(), 4), "the other context's array is not this one's");
}

TEST_P(ContextOfTwo, ContextsOfDifferentNamesLiveSideBySide) {
  expect_all_ok(run_ranks(GetParam().kind, "two_contexts_at_once", GetParam().size));
}

IR_SCENARIO(different_broadcasts) {
  Context context(job);
  Team world = context.world();
  const Error error = require_error(Errc::mismatch, {1}, [&] { world.broadcast(1, job.rank); });
  require(std::string(error.what())
                  .find("rank 0 called broadcast(4 bytes from place 0); rank 1 called "
                        "broadcast(4 bytes from place 1)") != std::string::npos,
          error.what());
  require_error(Errc::mismatch, {1},
                [&] { job.rank == 0 ? world.barrier() : void(world.all_gather(1)); });
  world.barrier();
}

TEST_P(ContextOfTwo, DifferentCallsAreNamedOnAllRanksAndTheTeamLivesOn) {
  expect_all_ok(run_ranks(GetParam().kind, "different_broadcasts", GetParam().size));
}

TEST(ContextOfOne, NeedsNoLauncherAndNoSocket) {
  Context context;
  EXPECT_EQ(context.size(), 1);
  EXPECT_EQ(context.world().all_gather(7), std::vector<int>{7});
  auto array = context.allocate<int>(3);
  Memory memory(context);
  memory.write(array.data(), 5);
  EXPECT_EQ(memory.read(array.at(0)), 5);
}

TEST(ContextOfOne, CanBeMoved) {
  Context context;
  auto array = context.allocate<int>(3);
  Context moved = std::move(context);
  EXPECT_TRUE(moved.is_symmetric(array.data(), array.bytes()));
  moved = Context();
  EXPECT_FALSE(moved.is_symmetric(array.data(), array.bytes()));
}

TEST(ContextOfOne, ArraysAndTeamsMayOutliveIt) {
  SymmetricArray<int> array;
  std::optional<Team> team;
  std::optional<Memory> memory;
  {
    Context context;
    array = context.allocate<int>(100);
    team = context.make_team({0});
    memory.emplace(context);
  }
  memory->write(array.data() + 99, 1);
  EXPECT_EQ(memory->read(array.at(0) + 99), 1);
  EXPECT_EQ(team->size(), 1);
  expect_error(Errc::invalid_argument, [&] { team->barrier(); });
}

TEST(ContextOfOne, StepsAreReportedInOrder) {
  std::vector<std::string> steps;
  Context context(
      ContextOptions{.on_step = [&](std::string_view step) { steps.emplace_back(step); }});
  EXPECT_EQ(steps, (std::vector<std::string>{"segments", "window", "world"}));
}

TEST(ContextOptionsTest, BadValuesAreRefusedBeforeAnythingHappens) {
  bool began = false;
  const auto refused = [&](Errc code, ContextOptions options) {
    options.on_step = [&](std::string_view) { began = true; };
    const Error error = expect_error(code, [&] { Context context(options); });
    EXPECT_FALSE(began) << error.what();
    return std::string(error.what());
  };
  refused(Errc::invalid_argument, {.link = Link::none});
  refused(Errc::invalid_argument, {.heap_bytes = 0});
  refused(Errc::invalid_argument, {.timeout = std::chrono::milliseconds(0)});
  refused(Errc::invalid_argument, {.timeout = std::chrono::milliseconds(-5)});
  refused(Errc::invalid_argument, {.timeout = std::chrono::milliseconds::max()});
  EXPECT_NE(refused(Errc::invalid_argument, {.construction_timeout = std::chrono::milliseconds(0)})
                .find("ContextOptions::construction_timeout is 0 ms"),
            std::string::npos);
  refused(Errc::out_of_memory, {.heap_bytes = ~std::size_t{0}});
  const std::string message = refused(Errc::out_of_memory, {.heap_bytes = std::size_t{1} << 50});
  EXPECT_NE(message.find("1125899906842624 bytes (1 PiB)"), std::string::npos) << message;
  EXPECT_NE(message.find("memory of this machine"), std::string::npos) << message;
  EXPECT_NE(refused(Errc::unsupported, {.backend = BackendKind::hip}).find("no hip backend"),
            std::string::npos);
}

TEST(ContextOptionsTest, ALaneLargerThanTheHeapIsOutOfMemory) {
  expect_error(Errc::out_of_memory, [] { Context context(ContextOptions{.heap_bytes = 1 << 20}); });
}

TEST(ContextOptionsTest, BadVariablesAreRefusedByName) {
  const std::vector<std::pair<const char*, const char*>> bad = {
      {"IRIDIUM_HEAP_BYTES", "lots"},
      {"IRIDIUM_TIMEOUT", "-1"},
      {"IRIDIUM_CONSTRUCTION_TIMEOUT", "-2"},
      {"IRIDIUM_CHECKED", "maybe"},
      {"IRIDIUM_BACKEND", "abacus"}};
  for (const auto& [variable, value] : bad) {
    ::setenv(variable, value, 1);
    const Error error = expect_error(Errc::invalid_argument, [] { Context context; });
    ::unsetenv(variable);
    EXPECT_NE(std::string(error.what()).find(value), std::string::npos) << error.what();
  }
}

TEST(ContextOptionsTest, JobsThatCannotBeAreRefused) {
  for (const auto& [rank, size] :
       std::vector<std::pair<int, int>>{{0, 0}, {1, 1}, {-1, 2}, {0, 65}, {0, -3}})
    expect_error(Errc::invalid_argument,
                 [&, r = rank, s = size] { Context context(Job{r, s, "test", "x", "y"}); });
}

}  // namespace
}  // namespace iridium::test
