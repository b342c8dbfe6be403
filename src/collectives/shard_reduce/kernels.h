// Every member reduces a shard: reduce-scatter, and the first half of a two-shot all-reduce.
#pragma once

#include "collectives/copy_arrays.h"
#include "collectives/reduction.h"
#include "collectives/shards.h"
#include "iridium/device/lane_call.h"

namespace iridium {

/// Members copy the others' shards to their scratch and read their own from everybody's. With
/// `gathers`, the result goes to the place of the own shard in the other half of the scratch, and
/// everybody reads everybody's. A round's barriers are crossed while the block works on the next
/// one or the one before.
template <Number T, int Vectors>
struct StagedShardReduce {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  const T* in;
  T* out;
  Shards shards;
  ReduceOp op;
  bool gathers;  ///< `out` has room for all shards, and gets them; else for this member's alone

  IR_DEVICE void operator()(Block block) const {
    LaneCall call(lane, block);
    ArrayCopies<T, Block::gpu_threads> copies(block, lane.peers().size() - 1);
    std::uint32_t staged = 0;
    std::uint32_t reduced = 0;
    // One code for the first round's staging and the others'.
    IR_ROLLED for (std::uint32_t next = 0; next <= shards.rounds.count; ++next) {
      if (next > 0) {
        auto reduction = reduction_of(block, call, next - 1);
        reduction.prepare();
        // Every member has staged this round, and reduced the one before.
        if (!call.await(staged)) return;
        block.let_next_start();
        reduction.run();
        if (gathers) reduced = call.arrive();
      }
      if (next < shards.rounds.count) {
        const auto source_of = [&](int i) {
          const Part part = part_of(block, i, next);
          return ArraySource<T>{in + part.first, part.count};
        };
        if (!copies.start_round(call, next, source_of)) return;
        T* const to = staging(call, next);
        copies.finish(source_of, [&](int i) { return to + part_of(block, i, next).staged; });
        staged = call.arrive();
      }
      if (next > 0 && gathers) {
        const T* const from = results(call, next - 1);
        const auto source_of = [&](int i) {
          const Part part = part_of(block, i, next - 1);
          return ArraySource<T>{lane.peers().at(from + part.staged, part.shard), part.count};
        };
        copies.prepare(source_of);
        if (!call.await(reduced)) return;
        copies.start();
        copies.finish(source_of, [&](int i) { return out + part_of(block, i, next - 1).first; });
      }
    }
    // What was staged last nobody reads any more, so the next call takes that half again, and not
    // the one with results: calls in a row need half the memory, of which a cache holds more.
    call.finish(shards.rounds.count + (gathers ? 1 : 0));
  }

 private:
  using Call = LaneCall<Block::gpu_threads>;

  IR_DEVICE T* staging(const Call& call, std::uint32_t round) const {
    return lane.scratch<T>(call.parity(round));
  }
  IR_DEVICE T* results(const Call& call, std::uint32_t round) const {
    return staging(call, round + 1);
  }

  /// This block's part of another member's shard.
  struct Part {
    int shard;
    std::size_t first;   ///< in the array
    std::size_t staged;  ///< in the scratch
    std::size_t count;
  };
  IR_DEVICE Part part_of(Block block, int i, std::uint32_t round) const {
    const int shard = staggered(lane.peers(), i + 1);
    const Slice slice = shards.slice(block, shard, round);
    return {shard, shards.first(shard, round) + slice.first, shards.staged(shard) + slice.first,
            slice.count};
  }

  IR_DEVICE auto reduction_of(Block block, const Call& call, std::uint32_t round) const {
    const Peers& peers = lane.peers();
    const int me = peers.rank();
    const Slice part = shards.slice(block, me, round);
    const std::size_t place = shards.staged(me) + part.first;
    const T* const staged = staging(call, round) + place;
    T* const result = results(call, round) + place;
    const T* const from = in + shards.first(me, round) + part.first;
    T* const to =
        out + (gathers ? shards.first(me, round) : shards.rounds.first(round)) + part.first;
    return slice_reduction<Vectors, T>(
        block, op, part.count, peers.size(),
        [me, from, staged, &peers](int member) {
          return member == me ? from : peers.at(staged, member);
        },
        gathers ? 2 : 1, [to, result](int i) { return i == 0 ? to : result; });
  }
};

/// Members read their shard from everybody's input and, with `gathers`, write it to everybody's
/// output: both are symmetric.
template <Number T, int Vectors>
struct DirectShardReduce {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  const T* in;
  T* out;
  Shards shards;  ///< of one round
  ReduceOp op;
  bool gathers;

  IR_DEVICE void operator()(Block block) const {
    LaneCall call(lane, block);
    if (!call.enter()) return;
    block.let_next_start();
    const Peers& peers = lane.peers();
    const Slice part = shards.slice(block, peers.rank(), 0);
    const std::size_t first = shards.first(peers.rank(), 0) + part.first;
    T* const to = out + (gathers ? first : part.first);
    reduce_slice<Vectors, T>(
        block, op, part.count, peers.size(), [&](int place) { return peers.at(in + first, place); },
        gathers ? peers.size() : 1, [&](int i) { return peers.at(to, staggered(peers, i)); });
    call.leave();
  }
};

}  // namespace iridium
