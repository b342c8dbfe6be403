// The probe on many ranks: every registered operation, and offenders on one rank alone.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "iridium/probe.h"
#include "probe/offenders.h"
#include "support/links.h"
#include "support/ranks.h"
#include "support/sampling.h"
#include "support/sanitizers.h"

namespace iridium::test {
namespace {

class ProbeRanks : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ProbeRanks, testing::ValuesIn(all_ranks()),
                         [](const auto& test) { return name(test.param); });

void require_expected(const Team& team, const Operation& operation, const Arguments& arguments,
                      const ProbeResult& result) {
  std::string what = operation.name;
  for (const auto& [key, value] : arguments) what.append(" ").append(key).append("=").append(value);
  require(is_expected(operation, result), what + " is " + std::string(name(result.verdict)) +
                                              " at " + result.step + ": " + result.reason);
  const bool cannot = !has_native_atomics(team) && needs_native_atomics(operation, arguments);
  require(
      (result.verdict == Verdict::unsupported) == cannot || depends_on_device(operation, arguments),
      what + " is " + std::string(name(result.verdict)) + ": " + result.reason);
}

void probe_everything(Context& context, StreamRef& stream) {
  Sample sample(context.size());
  for (const auto* list : {&operations(), &host_calls()})
    for (const Operation& operation : *list)
      for (const Arguments& arguments : combinations(operation))
        if (sample.takes_next())
          require_expected(context.world(), operation, arguments,
                           probe(context, stream, operation, arguments));
}

IR_SCENARIO(everything_registered) {
  Context context(job);
  Stream stream = context.make_stream();
  probe_everything(context, stream);
}
TEST_P(ProbeRanks, EveryRegisteredOperationIsAsExpected) {
  expect_all_ok(run_ranks(GetParam().kind, "everything_registered", GetParam().size));
}

IR_SCENARIO(operations_that_the_link_cannot_do) {
  Context context(job, {.link = Link::pcie});
  Stream stream = context.make_stream();
  for (const Operation& operation : operations())
    if (operation.name == "put_signal" || operation.name == "signal_all")
      require_expected(context.world(), operation, {}, probe(context, stream, operation, {}));
    else if (operation.name == "all_reduce")
      require_expected(context.world(), operation, {{"algorithm", "atomic"}},
                       probe(context, stream, operation, {{"algorithm", "atomic"}}));
  context.barrier();
}
TEST(ProbeLinks, OperationsThatTheLinkCannotDoAreUnsupported) {
  expect_all_ok(run_ranks(RankKind::processes, "operations_that_the_link_cannot_do", 2));
}

/// A capture that another part of the program holds open, on a thread of its own.
class OpenCapture {
 public:
  explicit OpenCapture(Context& context)
      : thread_([this, &context] {
          Stream stream = context.make_stream();
          stream.begin_capture();
          begun_.set_value();
          end_.get_future().wait();
          stream.call([] {});
          nodes_ = stream.end_capture().node_count();
        }) {
    begun_.get_future().wait();
  }
  ~OpenCapture() {
    if (thread_.joinable()) end();
  }
  /// How much it has recorded.
  std::size_t end() {
    end_.set_value();
    thread_.join();
    return nodes_;
  }

 private:
  std::promise<void> begun_;
  std::promise<void> end_;
  std::size_t nodes_ = 0;
  std::thread thread_;
};

IR_SCENARIO(while_another_stream_captures) {
  Context context(job);
  Context another(job, {.name = "another"});
  Stream stream = context.make_stream();
  OpenCapture open(another);
  probe_everything(context, stream);
  require(open.end() == 1, "the other capture has recorded its own call, and nothing else");
}
TEST_P(ProbeRanks, VerdictsAreTheSameWhileAnotherStreamCaptures) {
  expect_all_ok(run_ranks(GetParam().kind, "while_another_stream_captures", GetParam().size));
}

/// Work that keeps coming on a stream of its own.
class BusyStream {
 public:
  explicit BusyStream(Context& context)
      : array_(context.allocate<std::byte>(1u << 16)), stream_(context.make_stream()) {
    thread_ = std::thread([this] {
      for (unsigned char value = 0; !stop_; ++value) {
        stream_.fill(array_.data(), value, array_.bytes());
        stream_.synchronize();
        // The cores are for the probe's ranks, too.
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    });
  }
  ~BusyStream() {
    stop_ = true;
    thread_.join();
  }

 private:
  SymmetricArray<std::byte> array_;
  Stream stream_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

IR_SCENARIO(while_another_stream_runs) {
  Context context(job);
  Stream stream = context.make_stream();
  const BusyStream busy(context);
  probe_everything(context, stream);
}
TEST_P(ProbeRanks, VerdictsAreTheSameWhileAnotherStreamRuns) {
  expect_all_ok(run_ranks(GetParam().kind, "while_another_stream_runs", GetParam().size));
}

/// On one rank only.
class ProbeOffenders : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ProbeOffenders, testing::ValuesIn(both_kinds(3)),
                         [](const auto& test) { return name(test.param); });

/// What all ranks are told of an operation that is a `Wrong` one on rank `offender`.
template <class Wrong>
ProbeResult probe_with_offender(const Job& job, int offender) {
  Context context(job);
  CopyOperation right(context);
  Wrong wrong(context);
  CopyOperation& mine = job.rank == offender ? static_cast<CopyOperation&>(wrong) : right;
  Stream stream = context.make_stream();
  return probe(stream, target_of(mine), {.team = context.world()});
}

IR_SCENARIO(one_rank_synchronizes) {
  const ProbeResult result = probe_with_offender<Synchronizes>(job, 1);
  require(result.verdict == Verdict::not_capturable && result.rank == 1 &&
              result.step == "capture" && result.node_count == 0,
          "all ranks hear of the one: " + result.reason);
  require(result.reason.find("synchronize") != std::string::npos, result.reason);
}
TEST_P(ProbeOffenders, OneRankThatCannotIsToldToAll) {
  expect_all_ok(run_ranks(GetParam().kind, "one_rank_synchronizes", GetParam().size));
}

IR_SCENARIO(one_rank_is_wrong) {
  const ProbeResult result = probe_with_offender<WorksOnce>(job, 2);
  require(result.verdict == Verdict::wrong_result && result.rank == 2 && result.step == "replay 2",
          "all ranks hear of the one: " + result.step + ": " + result.reason);
}
TEST_P(ProbeOffenders, OneRankThatIsWrongIsToldToAll) {
  expect_all_ok(run_ranks(GetParam().kind, "one_rank_is_wrong", GetParam().size));
}

IR_SCENARIO(one_rank_throws) {
  const Error error =
      require_error(Errc::out_of_memory, {}, [&] { probe_with_offender<Throws>(job, 0); });
  require(std::string(error.what()).find("rank 0 failed at the eager call") != std::string::npos,
          error.what());
}
TEST_P(ProbeOffenders, OneRankThatThrowsIsToldToAll) {
  expect_all_ok(run_ranks(GetParam().kind, "one_rank_throws", GetParam().size));
}

IR_SCENARIO(one_rank_replays_more_often) {
  Context context(job, {.timeout = short_timeout});
  CopyOperation operation(context);
  Stream stream = context.make_stream();
  const auto step_of = [](int rank) {
    return std::string(rank == 1 ? "replay 2" : "eager call between replays");
  };
  const ProbeResult result = probe(stream, target_of(operation),
                                   {.team = context.world(), .replays = job.rank == 1 ? 2 : 1});
  const int other = job.rank == 1 ? 0 : 1;
  const std::string difference = "rank " + std::to_string(other) + " at " + step_of(other) +
                                 ", this one at " + step_of(job.rank);
  require(result.verdict == Verdict::replay_error && result.code == Errc::mismatch &&
              result.rank == job.rank && result.step == step_of(job.rank) &&
              result.reason.find(difference) != std::string::npos,
          std::string(name(result.verdict)) + " at " + result.step + ": " + result.reason);
}
TEST_P(ProbeOffenders, MembersAtDifferentStepsAreBothNamed) {
  expect_all_ok(run_ranks(GetParam().kind, "one_rank_replays_more_often", GetParam().size));
}

/// Rank 1 records nothing that its peers wait for: their replays run out of time.
void require_replay_error(const Job& job, bool same_team) {
  Context context(job, {.timeout = short_timeout});
  const Team team = same_team ? context.world() : context.make_team(context.world().ranks());
  Stream stream = context.make_stream();
  const ProbeTarget target = {[&](StreamRef& on) {
                                if (job.rank != 1 || on.capture_status() == CaptureStatus::none)
                                  device_barrier(on, team);
                              },
                              [](std::uint64_t) {},
                              [&](std::uint64_t) {
                                team.check();
                                return std::string();
                              }};
  const ProbeResult result = probe(stream, target, {.team = context.world()});
  require(result.verdict == Verdict::replay_error && result.step == "replay 1" &&
              result.reason.find("device_barrier") != std::string::npos &&
              result.reason.find("rank 1") != std::string::npos,
          std::string(name(result.verdict)) + " at " + result.step + ": " + result.reason);
  if (!same_team) context.barrier();
}
IR_SCENARIO(one_rank_records_nothing) {
  require_replay_error(job, false);
}
TEST_P(ProbeOffenders, OneRankThatRecordsNothingIsNamed) {
  expect_all_ok(run_ranks(GetParam().kind, "one_rank_records_nothing", GetParam().size));
}
IR_SCENARIO(one_rank_records_nothing_on_the_same_team) {
  require_replay_error(job, true);
}
TEST_P(ProbeOffenders, OneRankThatRecordsNothingIsNamedAlsoWhenItsTeamHasToAgree) {
  expect_all_ok(
      run_ranks(GetParam().kind, "one_rank_records_nothing_on_the_same_team", GetParam().size));
}

/// A signal whose value the host counts: right the first time it is replayed. Later the wait finds
/// the old value, and lets the read come before what it waits for.
IR_SCENARIO(signal_value_counted_by_the_host) {
  Context context(job, {.timeout = short_timeout});
  const Team team = context.make_team(context.world().ranks());
  auto flag = context.allocate<std::uint32_t>(1);
  Stream stream = context.make_stream();
  stream.fill(flag.data(), 0, flag.bytes());
  stream.synchronize();
  context.barrier();
  const int next = (team.rank() + 1) % team.size();
  std::uint32_t round = 0;
  std::uint32_t seen = 0;
  std::uint32_t expected = 0;
  const ProbeTarget target = {[&](StreamRef& on) {
                                signal(on, team, flag.data(), next, ++round);
                                wait(on, team, flag.data(), round);
                                on.copy(&seen, flag.data(), sizeof(seen));
                              },
                              [&](std::uint64_t) { ++expected; },
                              [&](std::uint64_t) {
                                team.check();
                                return first_difference(std::vector{seen}, std::vector{expected});
                              }};
  const ProbeResult result = probe(stream, target, {.team = context.world()});
  require(result.verdict == Verdict::wrong_result && result.step == "replay 2" &&
              result.reason == "element 0 is 2, not 3",
          std::string(name(result.verdict)) + " at " + result.step + ": " + result.reason);
}
TEST_P(ProbeOffenders, ASignalsValueCountedByTheHostIsFound) {
  if (under_thread_sanitizer) GTEST_SKIP() << "the mistake is a race";
  expect_all_ok(run_ranks(GetParam().kind, "signal_value_counted_by_the_host", GetParam().size));
}

}  // namespace
}  // namespace iridium::test
