// A captured graph, replayed a thousand times with changing inputs between eager calls.
#include <gtest/gtest.h>

#include "collectives/sequences.h"
#include "support/ranks.h"
#include "support/sanitizers.h"

namespace iridium::test {
namespace {

constexpr std::uint64_t replays = under_thread_sanitizer ? 100 : 1000;

void replay(Context& context, const Team& team, const std::vector<Call>& calls) {
  Sequence sequence(context, team, calls);
  Stream stream = context.make_stream();
  stream.begin_capture();
  sequence.launch(stream);
  const Graph graph = stream.end_capture();
  for (std::uint64_t seed = 1; seed <= replays; ++seed) {
    sequence.set(stream, seed * 10);
    if (seed % 7 == 0)
      sequence.launch(stream);
    else
      stream.launch(graph);
    sequence.fetch(stream);
    if (seed % 10 != 0) continue;
    stream.synchronize();
    sequence.check();
  }
}

IR_SCENARIO(replayed_all_reduce) {
  Context context(job);
  replay(context, context.world(), {{.type = DataType::bf16, .count = 1000}});
}

IR_SCENARIO(replayed_mixture) {
  Context context(job);
  const Team narrow = context.make_team(context.world().ranks(), narrow_lane);
  replay(context, narrow,
         {{.algorithm = "packet", .count = 700},
          {.collective = Collective::broadcast, .algorithm = "packet", .count = 50, .root = 1},
          {.algorithm = "two_shot", .symmetric = true, .count = 500, .blocks = 2},
          {.collective = Collective::all_gather, .algorithm = "push", .count = 300},
          {.collective = Collective::reduce_scatter, .algorithm = "pull", .count = 100},
          {.algorithm = "two_shot_push", .count = 900, .blocks = 2},
          {.collective = Collective::reduce_scatter, .algorithm = "push", .count = 700},
          {.algorithm = "two_shot_push", .symmetric = true, .count = 900, .blocks = 3},
          {.collective = Collective::all_to_all, .symmetric = true, .count = 30}});
}

class Replays : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(, Replays, testing::ValuesIn(both_kinds(3)),
                         [](const auto& test) { return name(test.param); });

TEST_P(Replays, OfAnAllReduceSeeNewInputs) {
  expect_all_ok(run_ranks(GetParam().kind, "replayed_all_reduce", GetParam().size));
}
TEST_P(Replays, OfAMixtureSeeNewInputs) {
  expect_all_ok(run_ranks(GetParam().kind, "replayed_mixture", GetParam().size));
}

}  // namespace
}  // namespace iridium::test
