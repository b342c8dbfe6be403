// all_gather_matmul against sums in double, and calls of it that cannot be.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "device/block_modes.h"
#include "fused/gather_run.h"
#include "support/ranks.h"
#include "support/sampling.h"

namespace iridium::test {
namespace {

using enum AllGatherMatmulAlgorithm;

constexpr std::size_t most_elements = 200'000;

/// Shapes around tiles and pieces, for a team of `members`: what its members share, they have equal
/// parts of.
std::vector<GatherCase> cases(int members) {
  const auto parts = static_cast<std::size_t>(members);
  std::vector<GatherCase> list;
  for (const MatmulShards shards : matmul_shards())
    for (const MatmulLayout layout : matmul_layouts())
      for (const AllGatherMatmulAlgorithm algorithm : {automatic, unfused, staged})
        for (const auto& [rows, columns, depth] : {std::array<std::size_t, 3>{1, 1, 1},
                                                   {1, 40, 8},
                                                   {3, 0, 9},
                                                   {13, 64, 40},
                                                   {35, 70, 65},
                                                   {33, 1, 130},
                                                   {2, 30, 300}}) {
          const bool by_rows = shards == MatmulShards::rows;
          GatherCase what = {
              .rows = by_rows ? rows * parts : rows,
              .columns = columns,
              .depth = by_rows ? depth : depth * parts,
              .options = {.algorithm = algorithm, .shards = shards, .matmul = {.layout = layout}}};
          list.push_back(what);
          what.finished = true;
          what.options.gathering_blocks = 3;
          what.options.piece_depth = 64;
          what.symmetric = algorithm == staged;
          list.push_back(what);
          // What has gaps, an all-gather of rows does not take.
          if (algorithm == unfused && by_rows) continue;
          what.gap = 8;
          what.symmetric = algorithm != unfused;
          list.push_back(what);
          what.gap = 3;
          list.push_back(what);
        }
  return list;
}

template <class T>
void run_cases(Context& context, std::uint64_t seed, std::uint64_t share) {
  GatherRun<T> run(context, context.world(), most_elements);
  Sample sample(context.size());
  std::uint64_t number = seed;
  for (const GatherCase& what : cases(context.size())) {
    if (!is_full_run() && (++number % share != 0 || !sample.takes_next())) continue;
    run.run(what, ++seed);
  }
}

IR_SCENARIO(gather_products) {
  Context context(job);
  run_cases<bf16>(context, 1, 2);
  run_cases<fp16>(context, 2, 5);
  run_cases<float>(context, 3, 5);
}

IR_SCENARIO(gather_products_under_random_schedules) {
  std::uint64_t seed = 0;
  for (const BlockMode& mode : block_modes) {
    Context context(job, {.backend = BackendKind::host,
                          .split_blocks = mode.split,
                          .schedule_seed = mode.seed,
                          .name = "random" + name(mode)});
    run_cases<bf16>(context, ++seed, mode.split ? 9 : 5);
  }
}

class AllGatherMatmul : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(, AllGatherMatmul, testing::ValuesIn(all_ranks()),
                         [](const auto& test) { return name(test.param); });

TEST_P(AllGatherMatmul, IsTheProductOfAllShards) {
  expect_all_ok(run_ranks(GetParam().kind, "gather_products", GetParam().size));
}

TEST(AllGatherMatmulUnderRandomSchedules, IsRight) {
  expect_all_ok(run_ranks(RankKind::threads, "gather_products_under_random_schedules", 3));
}

/// Calls of different shapes follow each other in one capture, on one gathered A.
IR_SCENARIO(gather_products_replayed) {
  Context context(job);
  const auto members = static_cast<std::size_t>(context.size());
  GatherRun<bf16> run(context, context.world(), most_elements);
  for (const MatmulShards shards : matmul_shards())
    for (const AllGatherMatmulAlgorithm algorithm : {unfused, staged}) {
      const GatherCase large = {.rows = 8 * members,
                                .columns = 72,
                                .depth = 40 * members,
                                .options = {.algorithm = algorithm, .shards = shards}};
      GatherCase small = large;
      small.rows = members;
      small.options.piece_depth = 64;
      Stream stream = context.make_stream();
      run.set_inputs(large, 1);
      stream.begin_capture();
      run.launch(stream, small);
      run.launch(stream, large);
      const Graph graph = stream.end_capture();
      for (std::uint64_t seed = 2; seed < 6; ++seed) {
        run.set_inputs(large, seed);
        stream.launch(graph);
        stream.launch(graph);
        stream.synchronize();
        run.check(large, seed);
      }
    }
}

TEST_P(AllGatherMatmul, ReplaysWithWhatIsThere) {
  expect_all_ok(run_ranks(GetParam().kind, "gather_products_replayed", GetParam().size));
}

/// A shard is written again right behind the call: others must be done with it.
IR_SCENARIO(gather_products_spoilt) {
  Context context(job);
  const Team team = context.world();
  const auto members = static_cast<std::size_t>(context.size());
  Stream stream = context.make_stream();
  constexpr std::size_t rows = 64;
  constexpr std::size_t depth = 256;
  const SymmetricArray<float> shard = context.allocate<float>(rows * depth);
  const SymmetricArray<float> gathered = context.allocate<float>(rows * depth * members);
  const SymmetricArray<float> b = context.allocate<float>(depth);
  const SymmetricArray<float> d = context.allocate<float>(rows * members);
  const std::vector<float> ones(depth, 1);
  stream.copy(b.data(), ones.data(), b.bytes());
  for (int round = 1; round < 30; ++round) {
    const std::vector<float> values(rows * depth, static_cast<float>(round + team.rank()));
    stream.copy(shard.data(), values.data(), shard.bytes());
    all_gather_matmul(stream, team, Matrix<float>{d.data(), rows * members, 1, 1},
                      {gathered.data(), rows * members, depth, depth},
                      SymmetricMatrix<float>{shard, rows, depth, depth},
                      {b.data(), 1, depth, depth},
                      {.algorithm = staged, .matmul = {.layout = MatmulLayout::nk}});
    const std::vector<float> spoilt(rows * depth, -1e6f);
    stream.copy(shard.data(), spoilt.data(), shard.bytes());
    std::vector<float> result(d.size());
    stream.copy(result.data(), d.data(), d.bytes());
    stream.synchronize();
    team.check();
    for (std::size_t i = 0; i < result.size(); ++i) {
      const std::size_t place = i / rows;
      const auto expected = static_cast<float>(depth * (static_cast<std::size_t>(round) + place));
      require(result[i] == expected,
              fmt::format("round {}: element {} is {}, not {}", round, i, result[i], expected));
    }
  }
}

TEST_P(AllGatherMatmul, IsDoneWithShardsWhenItEnds) {
  expect_all_ok(run_ranks(GetParam().kind, "gather_products_spoilt", GetParam().size));
}

IR_SCENARIO(refused_gather_products) {
  Context context(job);
  const Team team = context.world();
  Stream stream = context.make_stream();
  const SymmetricArray<bf16> memory = context.allocate<bf16>(4000);
  bf16* const at = memory.data();
  const Matrix<bf16> d = {at, 8, 16, 16};
  const Matrix<bf16> gathered = {at + 1000, 8, 24, 24};
  const Matrix<const bf16> shard = {at + 2000, 4, 24, 24};
  const Matrix<const bf16> b = {at + 3000, 24, 16, 16};
  const auto refused = [&](const std::vector<std::string>& words, const Matrix<bf16>& to,
                           const Matrix<bf16>& all, const Matrix<const bf16>& part,
                           const AllGatherMatmulOptions& options = {}) {
    const std::string message = require_error(Errc::invalid_argument, {}, [&] {
                                  all_gather_matmul(stream, team, to, all, part, b, options);
                                }).what();
    require(message.find("all_gather_matmul") != std::string::npos, message);
    for (const std::string& word : words)
      require(message.find(word) != std::string::npos, fmt::format("{}\nlacks {}", message, word));
  };
  refused({"A has 8 rows and 24 columns; 2 shards of 3 × 24, which are rows"}, d, gathered,
          {at + 2000, 3, 24, 24});
  refused({"2 shards of 4 × 24, which are depth"}, d, gathered, shard,
          {.shards = MatmulShards::depth});
  refused({"the shard has a pitch of 23 elements and 24 columns"}, d, gathered,
          {at + 2000, 4, 24, 23});
  refused({"the shard is null and has 4 rows"}, d, gathered, {nullptr, 4, 24, 24});
  refused({"the gathered A (384 bytes", "overlaps the shard"}, d, gathered, {at + 1000, 4, 24, 24});
  refused({"the gathered A", "overlaps B"}, d, {at + 2900, 8, 24, 24}, shard);
  refused({"D (256 bytes", "overlaps A"}, {at + 1100, 8, 16, 16}, gathered, shard);
  refused({"D has 7 rows"}, {at, 7, 16, 16}, gathered, shard);
  refused({"a pitch of 23"}, d, {at + 1000, 8, 24, 23}, shard);
  refused({"unfused is for rows without gaps", "24 columns and a pitch of 25"}, d,
          {at + 1000, 8, 24, 25}, shard);
  refused({"staged is for shards in symmetric memory"}, d, gathered, shard, {.algorithm = staged});
  refused({"-1 gathering blocks"}, d, gathered, shard, {.gathering_blocks = -1});
  refused({"a piece_depth of 65; expected a multiple of 64"}, d, gathered, shard,
          {.piece_depth = 65});
  refused({"there is no algorithm with number 3"}, d, gathered, shard,
          {.algorithm = static_cast<AllGatherMatmulAlgorithm>(3)});
  refused({"there are no shards with number 2"}, d, gathered, shard,
          {.shards = static_cast<MatmulShards>(2)});
  refused({"no algorithm with number 99"}, d, gathered, shard,
          {.matmul = {.algorithm = static_cast<MatmulAlgorithm>(99)}});
  stream.synchronize();
  team.check();
}

TEST(AllGatherMatmulRefused, IsWhatCannotBe) {
  expect_all_ok(run_ranks(RankKind::processes, "refused_gather_products", 2));
}

TEST(AllGatherMatmulNames, AreReadAsTheyAreWritten) {
  for (const AllGatherMatmulAlgorithm algorithm : all_gather_matmul_algorithms())
    EXPECT_EQ(parse_all_gather_matmul_algorithm(name(algorithm)), algorithm);
  for (const MatmulShards shards : matmul_shards())
    EXPECT_EQ(parse_matmul_shards(name(shards)), shards);
  expect_error(Errc::invalid_argument, [] { parse_all_gather_matmul_algorithm("fast"); });
  expect_error(Errc::invalid_argument, [] { parse_matmul_shards("columns"); });
}

}  // namespace
}  // namespace iridium::test
