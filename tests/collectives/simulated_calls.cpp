#include "collectives/simulated_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "collectives/all_gather/kernels.h"
#include "collectives/all_reduce/atomic.h"
#include "collectives/all_reduce/one_shot.h"
#include "collectives/all_reduce/packet.h"
#include "collectives/all_reduce/packet_two_shot.h"
#include "collectives/all_reduce/ring.h"
#include "collectives/all_to_all/kernels.h"
#include "collectives/broadcast/kernels.h"
#include "collectives/reduce_scatter/packet.h"
#include "collectives/shard_reduce/kernels.h"
#include "collectives/shard_reduce/push.h"

namespace iridium::test {
namespace {

using Word = std::uint32_t;

constexpr Word poison = 0xbadbad00;

std::size_t divided(std::size_t a, std::size_t b) {
  return (a + b - 1) / b;
}

/// Blocks' parts begin at multiples of 16 bytes, which are `vector` elements.
Rounds rounds_of(const SimulatedCall& call, std::size_t total, std::size_t chunk,
                 std::size_t vector = 16 / sizeof(Word)) {
  const std::size_t part = divided(chunk, static_cast<std::size_t>(call.blocks));
  return {.total = total,
          .chunk = chunk,
          .part = divided(part, vector) * vector,
          .count = static_cast<std::uint32_t>(divided(total, chunk))};
}

/// How many elements of a ragged exchange go from one place to another: up to `count`, some none.
std::uint32_t ragged(const SimulatedCall& call, int from, int to) {
  const auto number = static_cast<std::uint32_t>(from * 7 + to * 3);
  return number % 4 == 0 ? 0 : (call.count * (number % 4) + 2) / 3;
}
GivenParts ragged_parts(const SimulatedCall& call, int members, int place) {
  GivenParts parts = {};
  for (int other = 0; other < members; ++other) {
    const std::size_t first = static_cast<std::size_t>(other) * call.count * sizeof(Word);
    parts.sent[other] = {first, ragged(call, place, other) * sizeof(Word)};
    parts.received[other] = {first, ragged(call, other, place) * sizeof(Word)};
  }
  return parts;
}

/// Takes a call's output as soon as it may, and leaves poison there.
struct TakeOutput {
  Word* out;
  Word* taken;
  std::uint32_t count;

  IR_DEVICE void operator()(BlockOf<64> block) const {
    for (auto i = static_cast<std::uint32_t>(block.thread()); i < count;
         i += static_cast<std::uint32_t>(block.thread_count()))
      taken[i] = std::exchange(out[i], poison);
  }
};

bool has_part_per_member(Form form, bool output) {
  switch (form) {
    case Form::packet_reduce_scatter:
    case Form::staged_reduce_scatter:
    case Form::push_reduce_scatter:
    case Form::direct_reduce_scatter:
      return !output;
    case Form::packet_gather:
    case Form::staged_pull_gather:
    case Form::staged_push_gather:
    case Form::direct_pull_gather:
    case Form::direct_push_gather:
      return output;
    case Form::staged_exchange:
    case Form::ragged_exchange:
    case Form::direct_exchange:
      return true;
    default:
      return false;
  }
}
std::uint32_t length(const SimulatedCall& call, int members, bool output) {
  return call.count *
         (has_part_per_member(call.form, output) ? static_cast<std::uint32_t>(members) : 1);
}

PacketShare share_words(const SimulatedCall& call, std::size_t words) {
  return {.words = static_cast<std::uint32_t>(words),
          .part = static_cast<std::uint32_t>(rounds_of(call, words, words, 2).part)};
}
PacketShare packets_of(const SimulatedCall& call) {
  return share_words(call, divided(call.count, 2));
}

template <class Use>
void with_reducing_kernel(const SimulatedCall& call, const Lane& lane, const Word* in, Word* out,
                          Use use) {
  const auto members = static_cast<std::size_t>(lane.peers().size());
  const std::size_t stride = divided(divided(call.count, members), 4) * 4;
  const Shards all = {call.count, stride, rounds_of(call, stride, call.chunk)};
  const Shards all_at_once = {call.count, stride, rounds_of(call, stride, stride)};
  const std::size_t total = members * call.count;
  const Shards each = {total, call.count, rounds_of(call, call.count, call.chunk)};
  const Shards each_at_once = {total, call.count, rounds_of(call, call.count, call.count)};
  const PacketShare packets = packets_of(call);
  constexpr ReduceOp sum = ReduceOp::sum;
  switch (call.form) {
    case Form::packet_all_reduce:
      return use(PacketAllReduce<Word>{lane, in, out, call.count, packets, sum});
    case Form::packet_two_shot:
      return use(PacketTwoShotAllReduce<Word>{
          lane, in, out, call.count, share_words(call, divided(divided(call.count, 2), members)),
          sum});
    case Form::one_shot:
      return use(
          OneShotAllReduce<Word, 1>{lane, in, out, rounds_of(call, call.count, call.chunk), sum});
    case Form::two_shot:
      return use(StagedShardReduce<Word, 1>{lane, in, out, all, sum, true});
    case Form::direct_two_shot:
      return use(DirectShardReduce<Word, 1>{lane, in, out, all_at_once, sum, true});
    case Form::push_two_shot:
      return use(PushShardReduce<Word, 1>{lane, in, out, all, sum, ShardTarget::all_scratch});
    case Form::symmetric_push_two_shot:
      return use(PushShardReduce<Word, 1>{lane, in, out, all, sum, ShardTarget::all_outputs});
    case Form::ring:
      return use(RingAllReduce<Word>{lane, in, out, all, sum});
    case Form::atomic:
      return use(AtomicAllReduce<Word>{lane, in, out, all, sum});
    case Form::packet_reduce_scatter:
      return use(PacketReduceScatter<Word>{lane, in, out, call.count, call.count, packets, sum});
    case Form::staged_reduce_scatter:
      return use(StagedShardReduce<Word, 1>{lane, in, out, each, sum, false});
    case Form::push_reduce_scatter:
      return use(PushShardReduce<Word, 1>{lane, in, out, each, sum, ShardTarget::own_output});
    default:
      return use(DirectShardReduce<Word, 1>{lane, in, out, each_at_once, sum, false});
  }
}

template <class Use>
void with_moving_kernel(const SimulatedCall& call, const Lane& lane, const Word* words_in,
                        Word* words_out, Use use) {
  const auto* in = reinterpret_cast<const std::uint8_t*>(words_in);
  auto* out = reinterpret_cast<std::uint8_t*>(words_out);
  const std::size_t bytes = call.count * sizeof(Word);
  const Rounds rounds = rounds_of(call, bytes, call.chunk * sizeof(Word), 16);
  const Rounds once = rounds_of(call, bytes, bytes, 16);
  const PacketShare packets = packets_of(call);
  const GatherBuffers staged = {in, out, rounds};
  const GatherBuffers direct = {in, out, once};
  switch (call.form) {
    case Form::packet_gather:
      return use(PacketGather{lane, in, out, bytes, bytes, packets});
    case Form::staged_pull_gather:
      return use(StagedPullGather{lane, staged});
    case Form::staged_push_gather:
      return use(StagedPushGather<1>{lane, staged});
    case Form::direct_pull_gather:
      return use(DirectPullGather{lane, direct});
    case Form::direct_push_gather:
      return use(DirectPushGather<1>{lane, direct});
    case Form::staged_exchange:
      return use(StagedAllToAll<EqualParts>{lane, in, out, rounds, {bytes}});
    case Form::ragged_exchange:
      return use(StagedAllToAll<GivenParts>{
          lane, in, out, rounds, ragged_parts(call, lane.peers().size(), lane.peers().rank())});
    case Form::direct_exchange:
      return use(DirectAllToAll{lane, in, out, once});
    case Form::packet_broadcast:
      return use(PacketBroadcast{lane, in, out, bytes, packets, call.root});
    case Form::staged_broadcast:
      return use(StagedBroadcast{lane, in, out, rounds, call.root});
    default:
      return use(DirectBroadcast{lane, in, out, once, call.root});
  }
}

}  // namespace

SimulatedSequence::SimulatedSequence(const SequenceLimits& limits, std::uint64_t seed)
    : ranks_(limits.ranks), seed_(seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](std::size_t below) { return static_cast<std::uint32_t>(random() % below); };
  for (int i = 0; i < limits.calls; ++i) {
    SimulatedCall call = {};
    call.form = limits.forms.empty() ? static_cast<Form>(draw(form_count))
                                     : limits.forms[draw(limits.forms.size())];
    call.blocks = 1 + static_cast<int>(draw(static_cast<std::size_t>(limits.max_blocks)));
    call.count = 1 + draw(limits.max_count);
    // Smaller ones are left to other kernels: everybody has a shard.
    if (call.form == Form::packet_two_shot)
      call.count += static_cast<std::uint32_t>(2 * ranks_ * ranks_);
    call.chunk = 4 * (1 + draw(6));
    call.root = static_cast<int>(draw(static_cast<std::size_t>(limits.ranks)));
    call.in = elements_;
    call.out = call.in + length(call, ranks_, false) + draw(2);
    call.taken = call.out + length(call, ranks_, true) + draw(2);
    elements_ = call.taken + length(call, ranks_, true);
    calls_.push_back(call);
  }
}

void SimulatedSequence::launch(Simulation& simulation) const {
  for (int rank = 0; rank < ranks_; ++rank) {
    Word* const data = simulation.data(rank);
    std::fill(data, data + elements_, poison);
    for (const SimulatedCall& call : calls_) {
      const std::uint32_t inputs = length(call, ranks_, false);
      simulation.launch(rank, 1, WriteInput{data, call.in, inputs, seed_, rank});
      const auto launch = [&](const auto& kernel) { simulation.launch(rank, call.blocks, kernel); };
      const Lane lane = simulation.lane(rank);
      if (call.form <= Form::direct_reduce_scatter)
        with_reducing_kernel(call, lane, data + call.in, data + call.out, launch);
      else
        with_moving_kernel(call, lane, data + call.in, data + call.out, launch);
      simulation.launch(rank, 1, WriteInput{data, call.in, inputs, 0, rank});
      simulation.launch(rank, 1,
                        TakeOutput{data + call.out, data + call.taken, length(call, ranks_, true)});
    }
  }
}

Word SimulatedSequence::expected(const SimulatedCall& call, int place, std::uint32_t i) const {
  const auto from = [&](int source, std::uint32_t index) {
    return drawn_input(seed_, source, call.in + index);
  };
  const auto mine = static_cast<std::uint32_t>(place) * call.count;
  const auto source = static_cast<int>(i / call.count);
  const bool is_reduce_scatter =
      has_part_per_member(call.form, false) && !has_part_per_member(call.form, true);
  if (call.form <= Form::direct_reduce_scatter) {
    Word sum = 0;
    for (int member = 0; member < ranks_; ++member)
      sum += from(member, is_reduce_scatter ? mine + i : i);
    return sum;
  }
  if (!has_part_per_member(call.form, true)) return from(call.root, i);
  if (!has_part_per_member(call.form, false)) return from(source, i % call.count);
  if (call.form == Form::ragged_exchange && i % call.count >= ragged(call, source, place))
    return poison;
  return from(source, mine + i % call.count);
}

std::string SimulatedSequence::compare(const Simulation& simulation) const {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (const auto fault = simulation.fault(rank))
      return fmt::format("rank {}: fault {} in step {}, {} turns", rank,
                         static_cast<int>(fault->kind), fault->step, simulation.turns());
    for (const SimulatedCall& call : calls_)
      for (std::uint32_t i = 0; i < length(call, ranks_, true); ++i) {
        const Word late = simulation.data(rank)[call.out + i];
        if (late != poison)
          return fmt::format(
              "rank {}, form {} ({} blocks): {:#x} was written to output {} behind the call", rank,
              static_cast<int>(call.form), call.blocks, late, i);
        const Word found = simulation.data(rank)[call.taken + i];
        if (found != expected(call, rank, i))
          return fmt::format(
              "rank {}, form {} ({} blocks, {} elements in rounds of {}): output {} is {:#x}; "
              "expected {:#x}",
              rank, static_cast<int>(call.form), call.blocks, call.count, call.chunk, i, found,
              expected(call, rank, i));
      }
  }
  return {};
}

}  // namespace iridium::test
