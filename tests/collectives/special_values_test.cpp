// NaN, infinities, zeros of both signs, subnormals: through moves bit for bit, through reductions
// as plain code has them, and the same bits everywhere.
#include <gtest/gtest.h>

#include <map>

#include "collectives/calls.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

constexpr DataType float_types[] = {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64};

/// The forms whose outputs must have the same bits.
std::string family_of(const Call& call) {
  if (call.collective == Collective::reduce_scatter) return "reduce_scatter";
  // Sums that are added up in any order have only their members in common.
  if (call.algorithm == "atomic") return describe(call);
  return call.algorithm == "ring" ? "ring" : "all_reduce";
}

void require_same_bits(const Team& team, const std::vector<Call>& calls,
                       const std::vector<std::unique_ptr<CallRun>>& runs) {
  std::map<std::string, std::uint64_t> digests;
  Team members = team;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::uint64_t digest = runs[i]->digest();
    if (calls[i].collective == Collective::all_reduce)
      for (const std::uint64_t other : members.all_gather(digest))
        require(other == digest, describe(calls[i]) + ": members have different bits");
    const auto [first, is_first] = digests.emplace(family_of(calls[i]), digest);
    require(first->second == digest,
            describe(calls[i]) + ": not the bits of the algorithms before it");
  }
}

/// The algorithms that reduce by `op`. What atomic sums may be is known for three members, and on
/// CPUs: an NVIDIA GPU's atomic additions take subnormals for zeros.
std::vector<Call> reducing_calls(DataType type, ReduceOp op, bool with_atomic) {
  std::vector<Call> calls;
  for (const Call& form :
       every_form({.type = type, .op = op, .count = special_count, .values = Values::special}))
    if (reduces(form.collective) && knows(form.algorithm, op) &&
        (with_atomic || form.algorithm != "atomic"))
      calls.push_back(form);
  return calls;
}

IR_SCENARIO(special_reductions) {
  Context context(job);
  Team team = context.world();
  Stream stream = context.make_stream();
  const bool with_atomic = job.size <= 3 && context.backend() == BackendKind::host;
  for (const DataType type : float_types)
    for (const ReduceOp op : reduce_ops()) {
      const std::vector<Call> calls = reducing_calls(type, op, with_atomic);
      const auto runs = make_runs(context, team, calls);
      for (int repeat = 0; repeat < 2; ++repeat) {
        for (const auto& run : runs) run->run(stream, 1);
        stream.synchronize();
        team.check();
        for (const auto& run : runs) run->check();
        require_same_bits(team, calls, runs);
      }
    }
}

IR_SCENARIO(special_moves) {
  Context context(job);
  for (const DataType type : float_types) {
    std::vector<Call> calls;
    for (const Call& form :
         every_form({.type = type, .count = special_count, .values = Values::special}))
      if (!reduces(form.collective)) calls.push_back(form);
    run_all(context, context.world(), calls);
  }
}

class SpecialValues : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(, SpecialValues,
                         testing::Values(Ranks{RankKind::threads, 3}, Ranks{RankKind::threads, 5},
                                         Ranks{RankKind::processes, 1},
                                         Ranks{RankKind::processes, 3}),
                         [](const auto& test) { return name(test.param); });

TEST_P(SpecialValues, AreReducedAsPlainCodeDoes) {
  expect_all_ok(run_ranks(GetParam().kind, "special_reductions", GetParam().size));
}
TEST_P(SpecialValues, AreMovedBitForBit) {
  expect_all_ok(run_ranks(GetParam().kind, "special_moves", GetParam().size));
}

}  // namespace
}  // namespace iridium::test
