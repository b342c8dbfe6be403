// What cannot work is refused before anything is launched, with the value and the limit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>

#include "collectives/calls.h"
#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

constexpr std::size_t count = 64;
constexpr std::size_t huge = std::numeric_limits<std::size_t>::max() / 2;

/// A call that must throw, and what its message must say.
struct Refusal {
  std::function<void()> call;
  std::vector<std::string> words;
};

/// Two members with arrays and lanes to make mistakes with.
class Mistakes {
 public:
  explicit Mistakes(Context& context)
      : team(context.make_team({0, 1}, {.max_blocks = 8, .name = "pair"})),
        each{context.make_team({0}), context.make_team({1})},
        stream(context.make_stream()),
        in(context.allocate<float>(2 * count)),
        out(context.allocate<float>(2 * count)),
        small(context.allocate<float>(count - 1)),
        context_(context),
        memory_(context) {}

  /// Throws unless every call is refused in these words, and no kernel has run.
  void require_refused(const std::vector<Refusal>& refusals, const Team& lane_team,
                       Errc code = Errc::invalid_argument) {
    const std::uint64_t* const calls =
        lane_team.is_member() ? &lane_team.lane().state()->calls : nullptr;
    const std::uint64_t before = calls != nullptr ? memory_.read(calls) : 0;
    for (const Refusal& refusal : refusals) {
      const std::string message = require_error(code, {}, refusal.call).what();
      for (const std::string& word : refusal.words)
        require(message.find(word) != std::string::npos,
                fmt::format("{}\nlacks {}", message, word));
    }
    stream.synchronize();
    if (calls != nullptr) require(memory_.read(calls) == before, "nothing was launched");
  }

  /// The team is as good as new.
  void require_works() {
    run_all(context_, team,
            every_form({.type = DataType::fp32, .count = count, .blocks = 2, .root = 1}));
  }

  Team team;
  std::array<Team, 2> each;  ///< teams of one
  Stream stream;
  SymmetricArray<float> in;
  SymmetricArray<float> out;
  SymmetricArray<float> small;

 private:
  Context& context_;
  Memory memory_;
};

std::vector<Refusal> bad_arrays(Mistakes& at) {
  const Team& alone = at.each[at.team.rank() == 0 ? 0 : 1];
  float* const in = at.in.data();
  float* const out = at.out.data();
  auto* const odd = reinterpret_cast<float*>(reinterpret_cast<char*>(out) + 2);
  Stream& stream = at.stream;
  const Team& team = at.team;
  return {
      {[=, &stream, &team] { all_reduce(stream, team, in + 1, in, count); },
       {"256 bytes", "overlap"}},
      {[=, &stream, &team] { all_reduce(stream, team, in, in + count - 1, count); }, {"overlap"}},
      {[=, &stream, &team] { reduce_scatter(stream, team, in + 1, in, count); },
       {"512 bytes", "256 bytes", "overlap"}},
      {[=, &stream, &team] { all_gather(stream, team, out, out + 1, count); },
       {"512 bytes", "256 bytes", "overlap"}},
      {[=, &stream, &team] { all_to_all(stream, team, in + count, in, count); }, {"overlap"}},
      {[=, &stream, &alone] { broadcast(stream, alone, in + 1, in, count, 0); }, {"overlap"}},
      {[=, &stream, &at] { reduce_scatter(stream, at.team, at.in, at.in, count); }, {"overlap"}},
      {[=, &stream, &at] { all_gather(stream, at.team, at.in, at.in, count); }, {"overlap"}},
      {[=, &stream, &at] { all_to_all(stream, at.team, at.in, at.in, count); }, {"overlap"}},
      {[=, &stream, &team] { all_reduce(stream, team, odd, in, count); }, {"out", "4 bytes"}},
      {[=, &stream, &team] { all_gather(stream, team, out, odd, 1); }, {"in", "4 bytes"}},
      {[=, &stream, &team] { all_reduce<float>(stream, team, out, nullptr, count); },
       {"in", "null", "256 bytes"}},
      {[=, &stream, &team] { reduce_scatter<float>(stream, team, nullptr, in, count); },
       {"out", "null", "256 bytes"}},
      {[=, &stream, &alone] { broadcast(stream, alone, out, nullptr, count, 0); },
       {"in", "null", "256 bytes"}},
  };
}

std::vector<Refusal> small_arrays(Mistakes& at) {
  Stream& stream = at.stream;
  return {
      {[&] { all_reduce(stream, at.team, at.out, at.small, count); }, {"in", "63", "64"}},
      {[&] { all_reduce(stream, at.team, at.small, at.in, count); }, {"out", "63", "64"}},
      {[&] { reduce_scatter(stream, at.team, at.out, at.in, count + 1); }, {"in", "128", "65"}},
      {[&] { reduce_scatter(stream, at.team, at.small, at.in, count); }, {"out", "63", "64"}},
      {[&] { all_gather(stream, at.team, at.out, at.small, count); }, {"in", "63", "64"}},
      {[&] { all_gather(stream, at.team, at.out, at.in, count + 1); }, {"out", "128", "65"}},
      {[&] { all_to_all(stream, at.team, at.out, at.in, count + 1); }, {"in", "128", "65"}},
      {[&] { all_to_all(stream, at.team, at.small, at.in, count); }, {"out", "63", "64"}},
      {[&] { broadcast(stream, at.team, at.out, at.small, count, 0); }, {"in", "63", "64"}},
      {[&] { broadcast(stream, at.team, at.small, at.in, count, 0); }, {"out", "63", "64"}},
  };
}

std::vector<Refusal> huge_counts(Mistakes& at) {
  float* const in = at.in.data();
  float* const out = at.out.data();
  Stream& stream = at.stream;
  const Team& team = at.team;
  const std::string limit = std::to_string(std::numeric_limits<std::ptrdiff_t>::max());
  const std::string number = std::to_string(huge);
  return {
      {[=, &stream, &team] { all_reduce(stream, team, out, in, huge); }, {number, limit}},
      {[=, &stream, &team] { reduce_scatter(stream, team, out, in, huge); }, {number, limit}},
      {[=, &stream, &team] { all_gather(stream, team, out, in, huge); }, {number, limit}},
      {[=, &stream, &team] { all_to_all(stream, team, out, in, huge); }, {number, limit}},
      {[=, &stream, &team] { broadcast(stream, team, out, in, huge, 0); }, {number, limit}},
      // One more than half of what fits: fine for one member, too much for two.
      {[=, &stream, &team] { all_gather(stream, team, out, in, huge / 8 + 1); },
       {std::to_string(huge / 8 + 1), "2 members", limit}},
      {[&] { all_reduce(stream, at.team, at.out, at.in, huge); }, {"128", number}},
      {[&] { reduce_scatter(stream, at.team, at.out, at.in, huge); }, {"128", number}},
  };
}

std::vector<Refusal> bad_options(Mistakes& at) {
  float* const in = at.in.data();
  float* const out = at.out.data();
  Stream& stream = at.stream;
  const Team& team = at.team;
  std::vector<Refusal> all;
  for (const int blocks : {-1, 9, 1 << 30}) {
    const std::vector<std::string> words = {std::to_string(blocks) + " blocks", "8"};
    const auto add = [&](const std::function<void()>& call) { all.push_back({call, words}); };
    add([=, &stream, &team] { all_reduce(stream, team, out, in, 1, {.blocks = blocks}); });
    add([=, &stream, &team] { reduce_scatter(stream, team, out, in, 1, {.blocks = blocks}); });
    add([=, &stream, &team] { all_gather(stream, team, out, in, 1, {.blocks = blocks}); });
    add([=, &stream, &team] { all_to_all(stream, team, out, in, 1, {.blocks = blocks}); });
    add([=, &stream, &team] { broadcast(stream, team, out, in, 1, 0, {.blocks = blocks}); });
  }
  for (const int tile : {-1, 3, 5, 8}) {
    const std::vector<std::string> words = {"tile of " + std::to_string(tile), "1, 2 or 4"};
    const auto add = [&](const std::function<void()>& call) { all.push_back({call, words}); };
    add([=, &stream, &team] { all_reduce(stream, team, out, in, 1, {.tile = tile}); });
    add([=, &stream, &team] { reduce_scatter(stream, team, out, in, 1, {.tile = tile}); });
    add([=, &stream, &team] { all_gather(stream, team, out, in, 1, {.tile = tile}); });
  }
  for (const ReduceOp op : {ReduceOp::prod, ReduceOp::min, ReduceOp::max})
    for (const std::size_t elements : {count, std::size_t{0}})
      all.push_back({[=, &stream, &team] {
                       all_reduce(stream, team, out, in, elements,
                                  {.op = op, .algorithm = AllReduceAlgorithm::atomic});
                     },
                     {"atomic", "sum and avg", std::string(name(op))}});
  for (const int root : {-1, 2, 1 << 30})
    all.push_back({[=, &stream, &team] { broadcast(stream, team, out, in, count, root); },
                   {std::to_string(root), "2 members"}});
  return all;
}

std::vector<Refusal> bad_parts(Mistakes& at) {
  float* const in = at.in.data();
  float* const out = at.out.data();
  Stream& stream = at.stream;
  const Team& team = at.team;
  const auto exchange = [=, &stream, &team](const ExchangeParts& parts) {
    return [=, &stream, &team] { all_to_all(stream, team, out, in, parts); };
  };
  const std::vector<ExchangePart> good = {{0, 4}, {4, 4}};
  return {
      {exchange({.sent = {{0, 4}}, .received = good, .max_count = 4}),
       {"sent", "1 parts", "2 members"}},
      {exchange({.sent = good, .received = {{0, 4}, {4, 4}, {8, 4}}, .max_count = 4}),
       {"received", "3 parts", "2 members"}},
      {exchange({.sent = {}, .received = {}, .max_count = 0}), {"0 parts", "2 members"}},
      {exchange({.sent = good, .received = good, .max_count = 3}),
       {"sent", "4 elements", "max_count is 3"}},
      {exchange({.sent = {{0, 3}, {4, 3}}, .received = {{0, 3}, {4, 4}}, .max_count = 3}),
       {"received", "place 1", "4 elements", "max_count is 3"}},
      {exchange({.sent = {{0, 3}, {4, 3}}, .received = good, .max_count = 4}),
       {"sends itself 3 elements", "expects 4"}},
      {exchange({.sent = good, .received = {{0, 4}, {3, 4}}, .max_count = 4}),
       {"received parts overlap", "element 3"}},
      {exchange({.sent = good, .received = {{8, 4}, {5, 4}}, .max_count = 4}),
       {"received parts overlap", "element 8"}},
      {exchange({.sent = {{0, 4}, {huge, 4}}, .received = good, .max_count = 4}),
       {"sent", "place 1", std::to_string(huge)}},
      {exchange({.sent = good, .received = good, .max_count = huge}), {std::to_string(huge)}},
      {[=, &stream, &team] {
         all_to_all(stream, team, in + 7, in, {.sent = good, .received = good, .max_count = 4});
       },
       {"32 bytes", "overlap"}},
      {[=, &stream, &team] {
         all_to_all<float>(stream, team, nullptr, in,
                           {.sent = good, .received = good, .max_count = 4});
       },
       {"out", "null", "32 bytes"}},
  };
}

IR_SCENARIO(bad_calls) {
  Context context(job);
  Mistakes at(context);
  at.require_refused(bad_arrays(at), at.team);
  at.require_refused(small_arrays(at), at.team);
  at.require_refused(huge_counts(at), at.team);
  at.require_refused(bad_options(at), at.team);
  at.require_refused(bad_parts(at), at.team);
  at.require_works();
}

IR_SCENARIO(calls_of_strangers) {
  Context context(job);
  Mistakes at(context);
  const Team& team = at.each[job.rank == 0 ? 1 : 0];
  const std::vector<std::string> words = {"rank 0", "rank 1"};
  const std::vector<ExchangePart> parts = {{0, 1}};
  at.require_refused(
      {{[&] { all_reduce(at.stream, team, at.out.data(), at.in.data(), count); }, words},
       {[&] { all_reduce(at.stream, team, at.out, at.in, count); }, words},
       {[&] { all_reduce(at.stream, team, at.out, at.in, 0); }, words},
       {[&] { reduce_scatter(at.stream, team, at.out, at.in, count); }, words},
       {[&] { all_gather(at.stream, team, at.out, at.in, count); }, words},
       {[&] { all_to_all(at.stream, team, at.out, at.in, count); }, words},
       {[&] {
          all_to_all(at.stream, team, at.out.data(), at.in.data(),
                     {.sent = parts, .received = parts, .max_count = 1});
        },
        words},
       {[&] { broadcast(at.stream, team, at.out, at.in, count, 0); }, words}},
      team, Errc::not_a_member);
  at.require_works();
}

/// Lanes without room for what they are asked to do; small calls that need none still work.
IR_SCENARIO(lanes_too_small) {
  Context context(job);
  Mistakes at(context);
  const Team no_scratch =
      context.make_team({0, 1}, {.max_blocks = 8, .scratch_bytes = 0, .name = "no scratch"});
  const Team no_packets =
      context.make_team({0, 1}, {.max_blocks = 8, .packet_bytes = 0, .name = "no packets"});
  const auto launch = [&](const Team& team, const Call& call) {
    const std::shared_ptr<CallRun> run = make_run(context, team, call);
    return [run, &at] { run->launch(at.stream); };
  };
  std::vector<Refusal> unstaged;
  std::vector<Refusal> unpacketed;
  std::vector<Call> direct;
  for (const Call& form : every_form({.count = count, .blocks = 1})) {
    const bool is_packet = form.algorithm.starts_with("packet");
    const bool is_staged =
        form.algorithm == "ring" || form.algorithm == "atomic" || form.algorithm == "one_shot" ||
        form.algorithm == "two_shot_push" ||
        (form.collective == Collective::reduce_scatter && form.algorithm == "push") ||
        (!form.symmetric &&
         (form.algorithm == "two_shot" || form.algorithm == "pull" || form.algorithm == "push" ||
          form.collective == Collective::all_to_all));
    const bool is_known = !is_refused(form, context.world());
    if (is_known && is_packet)
      unpacketed.push_back(
          {launch(no_packets, form),
           {"packet_bytes of team no packets is 0 bytes", "packet", "needs at least 16"}});
    else if (is_known && is_staged)
      unstaged.push_back({launch(no_scratch, form),
                          {"scratch_bytes of team no scratch is 0 bytes", "needs at least"}});
    else if (!is_known || form.algorithm != "automatic")
      direct.push_back(form);
  }
  at.require_refused(unstaged, no_scratch);
  at.require_refused(unpacketed, no_packets);
  run_all(context, no_scratch, direct);
  run_all(context, no_packets, direct);
}

/// Pointers mean nothing where there is nothing to do.
IR_SCENARIO(empty_calls) {
  Context context(job);
  Team team = context.world();
  Stream stream = context.make_stream();
  const std::uint64_t* const calls = &team.lane().state()->calls;
  const std::uint64_t before = Memory(context).read(calls);
  all_reduce<float>(stream, team, nullptr, nullptr, 0);
  reduce_scatter<float>(stream, team, nullptr, nullptr, 0);
  all_gather<float>(stream, team, nullptr, nullptr, 0);
  all_to_all<float>(stream, team, nullptr, nullptr, 0);
  broadcast<float>(stream, team, nullptr, nullptr, 0, 0);
  stream.synchronize();
  require(Memory(context).read(calls) == before, "nothing was launched");
}

/// Arrays of which one begins where the other ends, either way round.
IR_SCENARIO(adjacent_arrays) {
  Context context(job);
  const Team team = context.world();
  Stream stream = context.make_stream();
  Memory memory(context);
  const SymmetricArray<float> array = context.allocate<float>(4 * count);
  using Collective = std::function<void(float* out, float* in)>;
  // `first` and `second`: what the halves of the output hold.
  const auto require_accepted = [&](std::size_t in_count, std::size_t out_count, float first,
                                    float second, const Collective& launch) {
    for (const bool in_first : {true, false}) {
      float* const in = array.data() + (in_first ? 0 : out_count);
      float* const out = array.data() + (in_first ? in_count : 0);
      memory.write(array, std::vector<float>(4 * count, static_cast<float>(job.rank + 1)));
      launch(out, in);
      stream.synchronize();
      team.check();
      const std::vector<float> found = memory.read(array);
      for (std::size_t i = 0; i < out_count; ++i)
        require(found[static_cast<std::size_t>(out - array.data()) + i] ==
                    (i < out_count / 2 ? first : second),
                fmt::format("element {} of {} elements behind {}", i, out_count, in_count));
      for (std::size_t i = 0; i < in_count; ++i)
        require(found[static_cast<std::size_t>(in - array.data()) + i] ==
                    static_cast<float>(job.rank + 1),
                "inputs stay as they are");
    }
  };
  require_accepted(count, count, 3, 3,
                   [&](float* out, float* in) { all_reduce(stream, team, out, in, count); });
  require_accepted(2 * count, count, 3, 3,
                   [&](float* out, float* in) { reduce_scatter(stream, team, out, in, count); });
  require_accepted(count, 2 * count, 1, 2,
                   [&](float* out, float* in) { all_gather(stream, team, out, in, count); });
  require_accepted(2 * count, 2 * count, 1, 2,
                   [&](float* out, float* in) { all_to_all(stream, team, out, in, count); });
  require_accepted(count, count, 2, 2,
                   [&](float* out, float* in) { broadcast(stream, team, out, in, count, 1); });
}

class BadInput : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(, BadInput, testing::ValuesIn(both_kinds(2)),
                         [](const auto& test) { return name(test.param); });

TEST_P(BadInput, IsRefusedWithTheValueAndTheLimit) {
  expect_all_ok(run_ranks(GetParam().kind, "bad_calls", 2));
}
TEST_P(BadInput, OfStrangersIsRefused) {
  expect_all_ok(run_ranks(GetParam().kind, "calls_of_strangers", 2));
}
TEST_P(BadInput, ForALaneWithoutRoomIsRefused) {
  expect_all_ok(run_ranks(GetParam().kind, "lanes_too_small", 2));
}
TEST_P(BadInput, IsFineWhereNothingIsToDo) {
  expect_all_ok(run_ranks(GetParam().kind, "empty_calls", 2));
}

TEST_P(BadInput, IsNotWhatOnlyTouches) {
  expect_all_ok(run_ranks(GetParam().kind, "adjacent_arrays", 2));
}

template <class Parse>
void expect_names(const std::string& what, const std::vector<std::string>& names, Parse parse) {
  for (const std::string& known : names) EXPECT_EQ(name(parse(known)), known);
  for (const std::string unknown : {"", "Packet", "packet ", "nccl"}) {
    const std::string message =
        expect_error(Errc::invalid_argument, [&] { parse(unknown); }).what();
    EXPECT_NE(message.find(fmt::format("{} algorithm '{}'", what, unknown)), std::string::npos)
        << message;
    for (const std::string& known : names)
      EXPECT_NE(message.find(known), std::string::npos) << message;
  }
}

TEST(Algorithms, AreParsedByTheirNames) {
  expect_names("all_reduce",
               {"automatic", "packet", "packet_two_shot", "one_shot", "two_shot", "two_shot_push",
                "ring", "atomic"},
               parse_all_reduce_algorithm);
  expect_names("reduce_scatter", {"automatic", "pull", "push", "packet"},
               parse_reduce_scatter_algorithm);
  expect_names("all_gather", {"automatic", "push", "pull", "packet"}, parse_all_gather_algorithm);
  expect_names("broadcast", {"automatic", "packet", "pull"}, parse_broadcast_algorithm);
}

}  // namespace
}  // namespace iridium::test
