// Checked mode: members whose calls differ are told so, with both sides, before anything moves.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "collectives/calls.h"
#include "device/block_modes.h"
#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

constexpr std::size_t count = 300;
constexpr float untouched = -7;

/// What a member has to call with.
struct Scene {
  StreamRef& stream;
  const Team& team;
  const SymmetricArray<float>& in;
  const SymmetricArray<float>& out;
  Context* context;
};

/// What the last member calls instead of what the others do.
struct Difference {
  std::function<void(Scene&)> others;
  std::function<void(Scene&)> last;
  std::vector<std::string> words;  ///< of the message, on every rank
};

void reduce(Scene& scene, std::size_t elements, const AllReduceOptions& options = {}) {
  all_reduce(scene.stream, scene.team, scene.out.data(), scene.in.data(), elements, options);
}

void exchange(Scene& scene, std::size_t sent, std::size_t received) {
  ExchangeParts parts;
  for (std::size_t i = 0; i < 3; ++i) {
    parts.sent.push_back({.first = 20 * i, .count = sent});
    parts.received.push_back({.first = 20 * i, .count = received});
  }
  // With itself a member agrees.
  parts.sent[static_cast<std::size_t>(scene.team.rank())].count = received;
  parts.max_count = 20;
  all_to_all(scene.stream, scene.team, scene.out.data(), scene.in.data(), parts);
}

std::vector<Difference> differences() {
  const auto usual = [](Scene& scene) { reduce(scene, count); };
  return {
      {usual, [](Scene& scene) { reduce(scene, count - 1); }, {"the count is", "300", "299"}},
      {usual, [](Scene& scene) { reduce(scene, 0); }, {"the count is", "300", "0"}},
      {usual,
       [](Scene& scene) { reduce(scene, count, {.op = ReduceOp::max}); },
       {"the reduction is", "sum", "max"}},
      {[](Scene& scene) { reduce(scene, count, {.algorithm = AllReduceAlgorithm::packet}); },
       [](Scene& scene) { reduce(scene, count, {.algorithm = AllReduceAlgorithm::ring}); },
       {"the algorithm is", "packet", "ring"}},
      {usual,
       [](Scene& scene) { reduce(scene, count, {.blocks = 7}); },
       {"the number of blocks is", "7"}},
      {[](Scene& scene) { reduce(scene, count, {.tile = 1}); },
       [](Scene& scene) { reduce(scene, count, {.tile = 4}); },
       {"the tile is", "1", "4"}},
      {usual,
       [](Scene& scene) {
         all_reduce(scene.stream, scene.team, reinterpret_cast<std::int32_t*>(scene.out.data()),
                    reinterpret_cast<const std::int32_t*>(scene.in.data()), count);
       },
       {"the type is", "fp32", "int32"}},
      {usual,
       [](Scene& scene) { all_reduce(scene.stream, scene.team, scene.out, scene.in, count); },
       {"the memory is", "plain", "symmetric"}},
      {usual,
       [](Scene& scene) { device_barrier(scene.stream, scene.team); },
       {"the operation is", "all_reduce", "device_barrier"}},
      {usual,
       [](Scene& scene) {
         reduce_scatter(scene.stream, scene.team, scene.out.data(), scene.in.data(), count / 3);
       },
       {"the operation is", "all_reduce", "reduce_scatter"}},
      // The first ten letters are the same.
      {[](Scene& scene) {
         all_gather(scene.stream, scene.team, scene.out.data(), scene.in.data(), count / 3);
       },
       [](Scene& scene) {
         all_gather_columns(scene.stream, scene.team, Matrix<float>{scene.out.data(), 5, 30, 30},
                            {scene.in.data(), 5, 10, 10});
       },
       {"the operation is", "all_gather_columns"}},
      {[](Scene& scene) {
         broadcast(scene.stream, scene.team, scene.out.data(), scene.in.data(), count, 0);
       },
       [](Scene& scene) {
         broadcast(scene.stream, scene.team, scene.out.data(), scene.in.data(), count, 2);
       },
       {"the root is", "0", "2"}},
      {[](Scene& scene) {
         detail::all_reduce(scene.stream, scene.team,
                            {scene.in.data(), scene.out.data(), count, DataType::fp32, true}, {});
       },
       [](Scene& scene) {
         detail::all_reduce(scene.stream, scene.team,
                            {scene.in.data() + 64, scene.out.data(), count, DataType::fp32, true},
                            {});
       },
       {"the heap offset of in is"}},
      {[](Scene& scene) {
         all_gather_columns(scene.stream, scene.team, Matrix<float>{scene.out.data(), 5, 30, 30},
                            {scene.in.data(), 5, 10, 10});
       },
       [](Scene& scene) {
         all_gather_columns(scene.stream, scene.team, Matrix<float>{scene.out.data(), 6, 30, 30},
                            {scene.in.data(), 6, 10, 10});
       },
       {"the number of rows is", "5", "6"}},
      {[](Scene& scene) {
         all_gather_columns(scene.stream, scene.team, SymmetricMatrix<float>{scene.out, 5, 30, 30},
                            SymmetricMatrix<float>{scene.in, 5, 10, 10});
       },
       [](Scene& scene) {
         all_gather_columns(scene.stream, scene.team, SymmetricMatrix<float>{scene.out, 5, 30, 40},
                            SymmetricMatrix<float>{scene.in, 5, 10, 10});
       },
       {"the pitch of out is", "30", "40"}},
      {[](Scene& scene) { exchange(scene, 11, 11); },
       [](Scene& scene) { exchange(scene, 12, 11); },
       {"members' parts differ", "expects 44 bytes of rank 2, which sends 48"}},
      {usual,
       [](Scene& scene) {
         // Its lane is one step ahead.
         Memory memory(*scene.context);
         const std::uint64_t* const calls = &scene.team.lane().state()->calls;
         memory.write(const_cast<std::uint64_t*>(calls), std::uint64_t{5} << 32);
         reduce(scene, count);
       },
       {"the lane's step is", "0", "5"}},
  };
}

/// Whether a call is captured and replayed instead of made.
void meet_differences(const Job& job, bool captured) {
  Context context(job, {.checked = true});
  const int last = job.size - 1;
  Memory memory(context);
  for (const Difference& difference : differences()) {
    // Failed teams stay failed.
    const Team team = context.make_team(context.world().ranks());
    Stream stream = context.make_stream();
    const SymmetricArray<float> in = context.allocate<float>(count + 64);
    const SymmetricArray<float> out = context.allocate<float>(count + 64);
    const std::vector<float> before(out.size(), untouched);
    memory.write(out, before);
    context.world().barrier();

    Scene scene = {stream, team, in, out, &context};
    const auto& call = job.rank == last ? difference.last : difference.others;
    if (captured) {
      stream.begin_capture();
      call(scene);
      const Graph graph = stream.end_capture();
      stream.launch(graph);
    } else {
      // The comparison may be through before the call is.
      try {
        call(scene);
      } catch (const Error& error) {
        require(error.code() == Errc::mismatch, error.what());
      }
    }
    stream.synchronize();

    const Error error = require_error(Errc::mismatch, {}, [&] { team.check(); });
    const std::string message = error.what();
    for (const std::string& word : difference.words)
      require(message.find(word) != std::string::npos, fmt::format("{}\nlacks {}", message, word));
    require(error.ranks().size() == 2 && std::ranges::count(error.ranks(), last) == 1,
            message + ": names one of the others, and the last");
    require(memory.read(out) == before, message + ": nothing has moved");
    context.world().barrier();
  }
}

IR_SCENARIO(different_calls) {
  meet_differences(job, false);
}
IR_SCENARIO(different_captured_calls) {
  meet_differences(job, true);
}

IR_SCENARIO(right_checked_calls) {
  Context context(job, {.checked = true});
  for (const std::size_t elements : {std::size_t{0}, std::size_t{1}, std::size_t{4097}})
    run_all(context, context.world(),
            every_form({.type = DataType::bf16, .count = elements, .blocks = 2, .root = 1}));
}

IR_SCENARIO(checked_calls_under_drawn_schedules) {
  std::size_t next = 0;
  for (const BlockMode& mode : block_modes) {
    Context context(job, {.backend = BackendKind::host,
                          .checked = true,
                          .split_blocks = mode.split,
                          .schedule_seed = mode.seed,
                          .name = "drawn" + name(mode)});
    // A few in every mode: each hand-over between fibers of several ranks takes long.
    std::vector<Call> forms =
        every_form({.type = DataType::fp32, .count = 100, .blocks = 2, .root = 2});
    std::erase_if(forms, [&](const Call&) { return next++ % 7 != 0; });
    run_all(context, context.world(), forms);
  }
}

class CheckedCalls : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(, CheckedCalls, testing::ValuesIn(both_kinds(3)),
                         [](const auto& test) { return name(test.param); });

TEST_P(CheckedCalls, ThatDifferFailTheTeamAndMoveNothing) {
  expect_all_ok(run_ranks(GetParam().kind, "different_calls", GetParam().size));
}
TEST_P(CheckedCalls, ThatDifferAreFoundInGraphs) {
  expect_all_ok(run_ranks(GetParam().kind, "different_captured_calls", GetParam().size));
}
TEST(CheckedCallsUnderDrawnSchedules, Work) {
  expect_all_ok(run_ranks(RankKind::threads, "checked_calls_under_drawn_schedules", 3));
}
TEST_P(CheckedCalls, ThatAgreeWork) {
  expect_all_ok(run_ranks(GetParam().kind, "right_checked_calls", GetParam().size));
}

}  // namespace
}  // namespace iridium::test
