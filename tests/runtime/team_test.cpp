#include "iridium/team.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/ranks.h"

namespace iridium::test {
namespace {

class TeamTest : public ::testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, TeamTest, ::testing::ValuesIn(all_ranks()),
                         [](const auto& test) { return name(test.param); });

IR_SCENARIO(reversed_team) {
  Context context(job);
  std::vector<int> ranks;
  for (int rank = job.size - 1; rank >= 0; --rank) ranks.push_back(rank);
  Team team = context.make_team(ranks);
  require(team.ranks() == ranks, "the list is kept in order");
  require(team.rank() == job.size - 1 - job.rank, "my place in it");
  require(team.all_gather(job.rank) == ranks, "values come in the team's order");
  require(team.broadcast(job.rank, 0) == job.size - 1, "place 0 is the last rank");
}

TEST_P(TeamTest, AnyOrderOfRanksIsATeam) {
  expect_all_ok(run_ranks(GetParam().kind, "reversed_team", GetParam().size));
}

IR_SCENARIO(room_for_compute) {
  Context context(job, {.lanes_at_once = 2});
  const auto everybody = context.world().ranks();
  require(context.lanes_at_once() == 2, "as it was asked for");
  require(context.world().beside_compute(), "by default grids leave room");
  require(!context.make_team(everybody, {.beside_compute = false}).beside_compute(),
          "unless they need not");
  require(context.make_team(everybody, {.exclusive = true}).beside_compute(),
          "nor does an exclusive team take it");
  if (job.size == 1) return;
  const bool is_last = job.rank == job.size - 1;
  const Error room = require_error(Errc::mismatch, {0, job.size - 1}, [&] {
    context.make_team(everybody, {.beside_compute = !is_last});
  });
  require(std::string(room.what()).find("room for compute") != std::string::npos, room.what());
  const Error exclusive = require_error(Errc::mismatch, {0, job.size - 1}, [&] {
    context.make_team(everybody, {.exclusive = is_last});
  });
  require(std::string(exclusive.what()).find("exclusive") != std::string::npos, exclusive.what());
}

TEST_P(TeamTest, AgreesAboutTheRoomForCompute) {
  expect_all_ok(run_ranks(GetParam().kind, "room_for_compute", GetParam().size));
}

IR_SCENARIO(bad_lanes_at_once) {
  for (const int lanes : {0, -1, 65}) {
    const Error error = require_error(Errc::invalid_argument, {},
                                      [&] { Context context(job, {.lanes_at_once = lanes}); });
    require(std::string(error.what())
                    .find("lanes_at_once is " + std::to_string(lanes) + "; expected 1 to 64") !=
                std::string::npos,
            error.what());
  }
}

TEST(TeamOfOne, BadLanesAtOnceAreRefused) {
  expect_all_ok(run_ranks(RankKind::processes, "bad_lanes_at_once", 1));
}

IR_SCENARIO(one_team_each) {
  Context context(job);
  std::vector<Team> teams;
  for (int rank = 0; rank < job.size; ++rank) teams.push_back(context.make_team({rank}));
  for (int rank = 0; rank < job.size; ++rank) {
    Team& team = teams[static_cast<std::size_t>(rank)];
    require(team.is_member() == (rank == job.rank), "only its rank is a member");
    if (team.is_member()) {
      team.barrier();
      require(team.all_gather(5) == std::vector<int>{5}, "alone");
    } else {
      const Error error = require_error(Errc::not_a_member, {}, [&] { team.barrier(); });
      require(
          std::string(error.what()).find("rank " + std::to_string(job.rank) + " is not in team") !=
              std::string::npos,
          error.what());
      require_error(Errc::not_a_member, {}, [&] { team.rank(); });
      require_error(Errc::not_a_member, {}, [&] { team.broadcast(1, 0); });
      require_error(Errc::not_a_member, {}, [&] { team.all_gather(1); });
    }
  }
}

TEST_P(TeamTest, OthersGetAClearError) {
  expect_all_ok(run_ranks(GetParam().kind, "one_team_each", GetParam().size));
}

IR_SCENARIO(bad_lists) {
  Context context(job);
  require_error(Errc::invalid_argument, {}, [&] { context.make_team(std::span<const int>()); });
  require_error(Errc::invalid_argument, {}, [&] { context.make_team({0, 0}); });
  require_error(Errc::invalid_argument, {}, [&] { context.make_team({job.size}); });
  require_error(Errc::invalid_argument, {}, [&] { context.make_team({-1}); });
  require_error(Errc::invalid_argument, {}, [&] { context.make_team({0}, {.max_blocks = 0}); });
  require_error(Errc::invalid_argument, {},
                [&] { context.make_team({0}, {.max_blocks = 100000}); });
  require_error(Errc::invalid_argument, {},
                [&] { context.make_team({0}, {.scratch_bytes = ~std::size_t{0}}); });
  require_error(Errc::out_of_memory, {},
                [&] { context.make_team({0}, {.scratch_bytes = context.heap_bytes()}); });
  context.barrier();
}

TEST_P(TeamTest, BadListsAndSizesAreRefused) {
  expect_all_ok(run_ranks(GetParam().kind, "bad_lists", GetParam().size));
}

class TeamOfFour : public ::testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, TeamOfFour, ::testing::ValuesIn(both_kinds(4)),
                         [](const auto& test) { return name(test.param); });

IR_SCENARIO(overlapping_teams) {
  Context context(job);
  Team left = context.make_team({0, 1, 2}, {.name = "left"});
  Team right = context.make_team({3, 2, 1}, {.name = "right"});
  require(left.name() == "team left", "named");
  for (int round = 0; round < 50; ++round) {
    if (left.is_member())
      require(left.all_gather(10 * round + job.rank)[2] == 10 * round + 2,
              "left's third is rank 2");
    if (right.is_member())
      require(right.all_gather(10 * round + job.rank)[0] == 10 * round + 3, "right's first is 3");
  }
}

TEST_P(TeamOfFour, TeamsThatOverlapDoNotMeet) {
  expect_all_ok(run_ranks(GetParam().kind, "overlapping_teams", GetParam().size));
}

IR_SCENARIO(teams_come_and_go) {
  Context context(job, {.heap_bytes = std::size_t{64} << 20});
  // Each lane takes more than a quarter of the heap: without reuse the third would not fit.
  for (int round = 0; round < 20; ++round) {
    Team team = context.make_team({0, 1, 2, 3}, {.scratch_bytes = 5 << 20});
    team.barrier();
  }
}

TEST_P(TeamOfFour, LanesAreFreedWithTheirTeam) {
  expect_all_ok(run_ranks(GetParam().kind, "teams_come_and_go", GetParam().size));
}

IR_SCENARIO(different_teams) {
  Context context(job);
  const Error lists =
      require_error(Errc::mismatch, {3}, [&] { context.make_team({0, job.rank == 3 ? 2 : 1}); });
  require(std::string(lists.what()).find("rank 3 called make_team(0, 2)") != std::string::npos,
          lists.what());
  const std::size_t scratch = job.rank == 2 ? 4096 : 8192;
  const Error sizes = require_error(Errc::mismatch, {0, 2},
                                    [&] { context.make_team({0, 1}, {.scratch_bytes = scratch}); });
  require(std::string(sizes.what()).find("rank 0 has 8192, rank 2 has 4096") != std::string::npos,
          sizes.what());
  Team team = context.make_team({0, 1, 2, 3}, {.max_blocks = 10 + job.rank});
  require(team.max_blocks() == 10, "the smallest grid wins");
  team.barrier();
}

TEST_P(TeamOfFour, MembersCompareWhatTheyBring) {
  expect_all_ok(run_ranks(GetParam().kind, "different_teams", GetParam().size));
}

}  // namespace
}  // namespace iridium::test
