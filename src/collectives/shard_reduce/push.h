// Shards that are reduced without reading another member's memory.
#pragma once

#include "collectives/copy_arrays.h"
#include "collectives/reduction.h"
#include "collectives/shards.h"
#include "iridium/device/lane_call.h"

namespace iridium {

/// Where a member writes its reduced shard.
enum class ShardTarget {
  own_output,   ///< its output has room for this shard alone
  all_outputs,  ///< everybody's, which are symmetric
  all_scratch,  ///< everybody's scratch, from which they take it to their output
};

/// Members write the others' shards to their owners' scratch, a slot per source, and reduce what
/// lies in their own.
template <Number T, int Vectors>
struct PushShardReduce {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  const T* in;
  T* out;
  Shards shards;
  ReduceOp op;
  ShardTarget target;

  IR_DEVICE void operator()(Block block) const {
    const Peers& peers = lane.peers();
    const bool takes_results = target == ShardTarget::all_scratch;
    LaneCall call(lane, block);
    ArrayCopies<T, Block::gpu_threads> copies(block, peers.size() - 1);
    IR_ROLLED for (std::uint32_t round = 0; round < shards.rounds.count; ++round) {
      const auto source_of = [&](int i) {
        const Part part = part_of(block, staggered(peers, i + 1), round);
        return ArraySource<T>{in + part.first, part.count};
      };
      if (!copies.start_round(call, round, source_of)) return;
      // Results have a half of their own. Without any, the next round sends while others reduce.
      T* const slots = lane.scratch<T>(call.parity(takes_results ? 0 : round));
      copies.finish(source_of, [&](int i) {
        const int owner = staggered(peers, i + 1);
        const std::size_t place = part_of(block, owner, round).staged;
        return peers.at(slots + shards.staged(peers.rank()) + place, owner);
      });
      const std::uint32_t sent = call.arrive();
      auto reduction = reduction_of(block, slots, results(call), round);
      reduction.prepare();
      // Every member has sent this round, and taken the results of the one before.
      if (!call.await(sent)) return;
      block.let_next_start();
      reduction.run();
      if (!takes_results) continue;
      // Every member has reduced this round, and written what came of it.
      if (!call.barrier()) return;
      copy_arrays<T>(block, peers.size() - 1, [&](int i) {
        const int shard = staggered(peers, i + 1);
        const Part part = part_of(block, shard, round);
        return ArrayCopy<T>{out + part.first, results(call) + shards.staged(shard) + part.staged,
                            part.count};
      });
    }
    if (target == ShardTarget::all_outputs)
      call.leave(shards.rounds.count);
    else if (takes_results)
      // The next call sends to the half that everybody has reduced, not to the one with results.
      call.finish(shards.rounds.count + shards.rounds.count % 2);
    else
      call.finish(shards.rounds.count);
  }

 private:
  using Call = LaneCall<Block::gpu_threads>;

  IR_DEVICE T* results(const Call& call) const { return lane.scratch<T>(call.parity(1)); }

  /// This block's part of a shard.
  struct Part {
    std::size_t first;   ///< in the array
    std::size_t staged;  ///< in a slot
    std::size_t count;
  };
  IR_DEVICE Part part_of(Block block, int shard, std::uint32_t round) const {
    const Slice slice = shards.slice(block, shard, round);
    return {shards.first(shard, round) + slice.first, slice.first, slice.count};
  }

  IR_DEVICE auto reduction_of(Block block, const T* slots, T* results, std::uint32_t round) const {
    const Peers& peers = lane.peers();
    const int me = peers.rank();
    const Part part = part_of(block, me, round);
    const T* const own = in + part.first;
    T* const to =
        out +
        (target == ShardTarget::own_output ? shards.rounds.first(round) + part.staged : part.first);
    T* const shared =
        target == ShardTarget::all_outputs ? to : results + shards.staged(me) + part.staged;
    return slice_reduction<Vectors, T>(
        block, op, part.count, peers.size(),
        [this, slots, part, me, own](int member) {
          return member == me ? own : slots + shards.staged(member) + part.staged;
        },
        target == ShardTarget::own_output ? 1 : peers.size(),
        [to, shared, &peers](int i) {
          return i == 0 ? to : peers.at(shared, staggered(peers, i));
        });
  }
};

}  // namespace iridium
