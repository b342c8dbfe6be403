// Every member reduces a shard: reduce-scatter, and the first half of a two-shot all-reduce.
#pragma once

#include "collectives/copy_arrays.h"
#include "collectives/reduction.h"
#include "collectives/shards.h"
#include "iridium/device/lane_call.h"

namespace iridium {

/// Members copy the others' shards to their scratch and read their own from everybody's. With
/// `gathers`, the result takes the place of the own shard in the scratch, and everybody reads
/// everybody's. A round's barriers are crossed while the block works on the next one or the one
/// before.
template <Number T, int Vectors>
struct StagedShardReduce {
  static constexpr int blocks_per_processor = 2;
  Lane lane;
  const T* in;
  T* out;
  Shards shards;
  ReduceOp op;
  bool gathers;  ///< `out` has room for all shards, and gets them; else for this member's alone

  IR_DEVICE void operator()(MovingBlock block) const {
    LaneCall call(lane, block);
    if (!call.begin()) return;
    std::uint32_t staged = 0;
    std::uint32_t reduced = 0;
    // One code for the first round's staging and the others'.
    IR_ROLLED for (std::uint32_t next = 0; next <= shards.rounds.count; ++next) {
      if (next > 0) {
        // Every member has staged this round, and reduced the one before.
        if (!call.await(staged)) return;
        reduce(block, scratch(call, next - 1), next - 1);
        if (gathers) reduced = call.arrive();
      }
      if (next < shards.rounds.count) {
        stage(block, scratch(call, next), next);
        staged = call.arrive();
      }
      if (next > 0 && gathers) {
        if (!call.await(reduced)) return;
        gather(block, scratch(call, next - 1), next - 1);
      }
    }
    call.finish(shards.rounds.count);
  }

 private:
  IR_DEVICE T* scratch(const LaneCall<MovingBlock::gpu_threads>& call, std::uint32_t round) const {
    return reinterpret_cast<T*>(lane.scratch(call.parity(round)));
  }

  IR_DEVICE void stage(MovingBlock block, T* staged, std::uint32_t round) const {
    copy_arrays<T>(block, lane.peers().size() - 1, [&](int i) {
      const int shard = staggered(lane.peers(), i + 1);
      const Slice part = shards.slice(block, shard, round);
      return ArrayCopy<T>{staged + shards.staged(shard) + part.first,
                          in + shards.first(shard, round) + part.first, part.count};
    });
  }

  IR_DEVICE void reduce(MovingBlock block, T* staged, std::uint32_t round) const {
    const Peers& peers = lane.peers();
    const int me = peers.rank();
    const Slice part = shards.slice(block, me, round);
    T* const mine = staged + shards.staged(me) + part.first;
    const T* const from = in + shards.first(me, round) + part.first;
    T* const to =
        out + (gathers ? shards.first(me, round) : shards.rounds.first(round)) + part.first;
    reduce_slice<Vectors, T>(
        block, op, part.count, peers.size(),
        [&](int place) { return place == me ? from : peers.at(mine, place); }, gathers ? 2 : 1,
        [&](int i) { return i == 0 ? to : mine; });
  }

  IR_DEVICE void gather(MovingBlock block, T* staged, std::uint32_t round) const {
    const Peers& peers = lane.peers();
    copy_arrays<T>(block, peers.size() - 1, [&](int i) {
      const int shard = staggered(peers, i + 1);
      const Slice part = shards.slice(block, shard, round);
      return ArrayCopy<T>{out + shards.first(shard, round) + part.first,
                          peers.at(staged + shards.staged(shard) + part.first, shard), part.count};
    });
  }
};

/// Members read their shard from everybody's input and, with `gathers`, write it to everybody's
/// output: both are symmetric.
template <Number T, int Vectors>
struct DirectShardReduce {
  static constexpr int blocks_per_processor = 2;
  Lane lane;
  const T* in;
  T* out;
  Shards shards;  ///< of one round
  ReduceOp op;
  bool gathers;

  IR_DEVICE void operator()(MovingBlock block) const {
    LaneCall call(lane, block);
    if (!call.enter()) return;
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
