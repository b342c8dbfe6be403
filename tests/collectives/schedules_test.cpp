// Every form of every collective under drawn schedules with stalls, and with blocks split into
// fibers. Inputs are overwritten right behind every call.
#include <gtest/gtest.h>

#include "collectives/calls.h"
#include "device/block_modes.h"
#include "support/ranks.h"
#include "support/sampling.h"
#include "support/sanitizers.h"

namespace iridium::test {
namespace {

/// Calls that follow each other on the same arrays, without waiting.
void run_spoilt(Context& context, const Team& team, const Call& shape, Sample& sample) {
  Stream stream = context.make_stream();
  std::vector<Call> forms = every_form(shape);
  std::erase_if(forms, [&](const Call&) { return !sample.takes_next(); });
  const auto runs = make_runs(context, team, forms);
  const std::uint64_t repeats = under_thread_sanitizer ? 1 : 2;
  for (std::uint64_t seed = 1; seed <= repeats; ++seed)
    for (const auto& run : runs) {
      run->set(stream, seed);
      run->launch(stream);
      run->spoil(stream);
      run->fetch(stream);
    }
  stream.synchronize();
  team.check();
  for (const auto& run : runs) run->check();
}

IR_SCENARIO(collectives_under_drawn_schedules) {
  Sample sample(job.size);
  for (const BlockMode& mode : block_modes) {
    Context context(job, {.backend = BackendKind::host,
                          .split_blocks = mode.split,
                          .schedule_seed = mode.seed,
                          .name = "drawn" + name(mode)});
    const Team narrow = context.make_team(context.world().ranks(), narrow_lane);
    for (const auto& [count, blocks] :
         {std::pair<std::size_t, int>{1, 3}, {37, 1}, {700, 1}, {700, 3}})
      run_spoilt(context, narrow,
                 {.type = DataType::int32, .count = count, .blocks = blocks, .root = 1}, sample);
    // Beyond a tile.
    run_spoilt(context, context.world(),
               {.type = DataType::fp16, .count = 4500, .blocks = 1, .tile = 1}, sample);
  }
}

class HostSchedules : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(, HostSchedules, testing::ValuesIn(both_kinds(3)),
                         [](const auto& test) { return name(test.param); });
TEST_P(HostSchedules, LeaveEveryFormRight) {
  expect_all_ok(run_ranks(GetParam().kind, "collectives_under_drawn_schedules", 3));
}

}  // namespace
}  // namespace iridium::test
