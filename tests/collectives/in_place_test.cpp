// Outputs in the place of inputs, and arrays that begin anywhere an element may.
#include <gtest/gtest.h>

#include "collectives/calls.h"
#include "support/ranks.h"
#include "support/sampling.h"

namespace iridium::test {
namespace {

constexpr DataType types[] = {DataType::uint8, DataType::bf16, DataType::fp32, DataType::int64};
/// Around a packet, a vector, a tile, and several rounds of a narrow lane.
constexpr std::size_t counts[] = {0, 1, 3, 37, 1025, 8193};

std::vector<Overlap> overlaps_of(const Call& form) {
  if (form.symmetric) {
    const bool may =
        form.collective == Collective::all_reduce || form.collective == Collective::broadcast;
    return may ? std::vector{Overlap::same} : std::vector<Overlap>();
  }
  const bool has_own =
      form.collective == Collective::reduce_scatter || form.collective == Collective::all_gather;
  return has_own ? std::vector{Overlap::same, Overlap::own} : std::vector{Overlap::same};
}

std::vector<Call> in_place_calls(DataType type, int members) {
  std::vector<Call> calls;
  for (const std::size_t count : counts)
    for (const int blocks : {0, 3})
      for (Call form : every_form({.type = type, .count = count, .blocks = blocks, .tile = 1}))
        for (const Overlap overlap : overlaps_of(form)) {
          form.overlap = overlap;
          form.root = static_cast<int>(calls.size()) % members;
          calls.push_back(form);
        }
  return calls;
}

std::vector<Call> shifted_calls(DataType type, int members) {
  std::vector<Call> calls;
  for (const std::size_t count : counts)
    for (const auto& [in, out] : {std::pair{1, 0}, {0, 1}, {1, 1}, {3, 5}})
      for (Call form : every_form({.type = type, .count = count, .blocks = 3, .tile = 1})) {
        if (form.symmetric) continue;
        form.in_shift = static_cast<std::size_t>(in);
        form.out_shift = static_cast<std::size_t>(out);
        form.root = static_cast<int>(calls.size()) % members;
        calls.push_back(form);
      }
  return calls;
}

void run_on_both_lanes(const Job& job, std::vector<Call> (*calls)(DataType, int)) {
  Context context(job);
  const Team narrow = context.make_team(context.world().ranks(), narrow_lane);
  Sample sample(job.size);
  for (const DataType type : types)
    for (const Team& team : {context.world(), narrow}) {
      std::vector<Call> some = calls(type, job.size);
      std::erase_if(some, [&](const Call&) { return !sample.takes_next(); });
      run_all(context, team, some);
    }
}

IR_SCENARIO(in_place) {
  run_on_both_lanes(job, in_place_calls);
}
IR_SCENARIO(shifted) {
  run_on_both_lanes(job, shifted_calls);
}

class Arrangements : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(, Arrangements,
                         testing::Values(Ranks{RankKind::threads, 1}, Ranks{RankKind::threads, 3},
                                         Ranks{RankKind::processes, 2}),
                         [](const auto& test) { return name(test.param); });

TEST_P(Arrangements, OutputsMayLieInThePlaceOfInputs) {
  expect_all_ok(run_ranks(GetParam().kind, "in_place", GetParam().size));
}
TEST_P(Arrangements, ArraysMayBeginAtAnyElement) {
  expect_all_ok(run_ranks(GetParam().kind, "shifted", GetParam().size));
}

}  // namespace
}  // namespace iridium::test
