// Every type, reduction and algorithm, on counts around every boundary. A sample of the rest of the
// matrix, drawn from a seed; all of it where IRIDIUM_TEST_FULL is 1.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "collectives/calls.h"
#include "collectives/shards.h"
#include "support/ranks.h"
#include "support/sampling.h"

namespace iridium::test {
namespace {

enum class Size { none, one, odd, below_tile, tile, above_tile, large, rounds };
constexpr int size_count = 8;
constexpr int tiles[] = {1, 2, 4};
constexpr int block_counts[] = {1, 3, 20};

/// The call's count, in elements of each member's shard where it has such.
std::size_t count_of(Size size, const Call& call, int members) {
  const auto parts = static_cast<std::size_t>(members);
  const std::size_t element = size_of(call.type);
  const bool is_sharded =
      call.algorithm.find("two_shot") != std::string::npos || call.algorithm == "ring";
  const std::size_t tile = static_cast<std::size_t>(call.tile * Block::gpu_threads) * 16 / element *
                           (is_sharded ? parts : 1);
  const std::size_t all = call.collective == Collective::all_reduce ? 1 : parts;
  switch (size) {
    case Size::none:
      return 0;
    case Size::one:
      return 1;
    case Size::odd:
      return 37;
    case Size::below_tile:
      return tile - 1;
    case Size::tile:
      return tile;
    case Size::above_tile:
      return tile + 1;
    case Size::large:
      return 200'000 / element / all + 1;
    case Size::rounds:
      return 25'000 / element / all + 1;
  }
  return 0;
}

/// Every collective, algorithm and reduction, of one type.
std::vector<Call> combinations(DataType type) {
  std::vector<Call> all;
  for (const Call& form : every_form({.type = type}))
    for (const ReduceOp op : reduce_ops()) {
      if (form.symmetric || !knows(form.algorithm, op)) continue;
      if (!reduces(form.collective) && op != ReduceOp::sum) continue;
      all.push_back(form);
      all.back().op = op;
    }
  return all;
}

struct Case {
  Call call;
  Size size;
};

bool uses_tiles(const Call& call) {
  return call.algorithm == "automatic" || call.algorithm == "one_shot" ||
         call.algorithm.starts_with("two_shot") || call.algorithm == "pull" ||
         call.algorithm == "push";
}

std::vector<Case> every_case(const std::vector<Call>& combinations, int members) {
  std::vector<Case> cases;
  for (Call call : combinations)
    for (const bool symmetric : {false, true})
      for (const int tile : tiles)
        for (const int blocks : block_counts)
          for (int size = 0; size < size_count; ++size) {
            if (tile != 1 && !uses_tiles(call)) continue;
            call.symmetric = symmetric;
            call.tile = tile;
            call.blocks = blocks;
            call.root = static_cast<int>(cases.size()) % members;
            cases.push_back({call, static_cast<Size>(size)});
          }
  return cases;
}

std::vector<Case> some_cases(const std::vector<Call>& combinations, int members) {
  std::mt19937_64 random(static_cast<std::uint64_t>(combinations.front().type) * 100 +
                         static_cast<std::uint64_t>(members));
  const auto draw = [&](int below) {
    return static_cast<int>(random() % static_cast<std::uint64_t>(below));
  };
  std::vector<Case> cases;
  for (Call call : combinations) {
    call.symmetric = draw(2) == 0;
    call.tile = tiles[draw(3)];
    call.blocks = block_counts[draw(3)];
    call.root = draw(members);
    cases.push_back({call, static_cast<Size>(draw(size_count))});
  }
  return cases;
}

void run_cases(Context& context, const std::vector<Case>& cases) {
  std::vector<Call> wide;
  std::vector<Call> narrow;
  for (const auto& [call, size] : cases) {
    Call sized = call;
    sized.count = count_of(size, call, context.size());
    // With many ranks on one GPU a grid may have fewer.
    sized.blocks = std::min(call.blocks, context.world().max_blocks());
    (size == Size::rounds ? narrow : wide).push_back(sized);
  }
  run_all(context, context.world(), wide);
  run_all(context, context.make_team(context.world().ranks(), narrow_lane), narrow);
}

std::string scenario_of(DataType type) {
  return "matrix_" + std::string(name(type));
}

/// A scenario per type: a process is told no more than its scenario's name.
const auto scenarios = [] {
  std::vector<RegisterScenario> all;
  for (const DataType type : data_types())
    all.emplace_back(scenario_of(type).c_str(), [type](const Job& job) {
      Context context(job);
      const auto all_calls = combinations(type);
      run_cases(context,
                is_full_run() ? every_case(all_calls, job.size) : some_cases(all_calls, job.size));
    });
  return all;
}();

class Matrix : public testing::TestWithParam<std::tuple<Ranks, DataType>> {};

std::vector<Ranks> matrix_ranks() {
  std::vector<Ranks> all;
  for (const int size : {1, 2, 3, 5, 8}) all.push_back({RankKind::threads, size});
  for (const int size : {2, 5}) all.push_back({RankKind::processes, size});
  return all;
}
INSTANTIATE_TEST_SUITE_P(, Matrix,
                         testing::Combine(testing::ValuesIn(matrix_ranks()),
                                          testing::ValuesIn(data_types().begin(),
                                                            data_types().end())),
                         [](const auto& test) {
                           return name(std::get<0>(test.param)) + "_" +
                                  std::string(name(std::get<1>(test.param)));
                         });

TEST_P(Matrix, IsRight) {
  const auto [ranks, type] = GetParam();
  expect_all_ok(run_ranks(ranks.kind, scenario_of(type), ranks.size));
}

}  // namespace
}  // namespace iridium::test
