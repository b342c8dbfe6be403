#pragma once

#include <type_traits>

#include "collectives/reduction.h"
#include "collectives/shards.h"
#include "iridium/device/atomic.h"
#include "iridium/device/lane_call.h"

namespace iridium {

/// Everybody adds its elements to the sums that their shard's owner keeps, in whatever order they
/// come, and reads all sums. Three phases, a barrier between each two.
template <Number T>
struct AtomicAllReduce {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  const T* in;
  T* out;
  Shards shards;
  ReduceOp op;

  /// Narrow integers are summed in wide ones, whose low bits are the same.
  using Total = std::conditional_t<sizeof(T) == 1, std::uint32_t, Accumulator<T>>;

  IR_DEVICE void operator()(Block block) const {
    const Peers& peers = lane.peers();
    const int size = peers.size();
    const Finish<T> finish(op, size);
    LaneCall call(lane, block);
    if (!call.begin()) return;
    IR_ROLLED for (std::uint32_t round = 0; round < shards.rounds.count; ++round) {
      Total* const sums = lane.scratch<Total>(call.parity(round));
      for_each_element(block, shards.slice(block, peers.rank(), round),
                       [&](std::size_t i) { sums[i] = Total(); });
      if (!call.barrier()) return;
      block.let_next_start();
      IR_ROLLED for (int k = 0; k < size; ++k) {
        const int shard = staggered(peers, k);
        const std::size_t at = shards.first(shard, round);
        Total* const theirs = peers.at(sums, shard);
        for_each_element(block, shards.slice(block, shard, round), [&](std::size_t i) {
          atomic_add(block, theirs + i, static_cast<Total>(convert<Accumulator<T>>(in[at + i])),
                     order::relaxed, scope::system);
        });
      }
      if (!call.barrier()) return;
      IR_ROLLED for (int k = 0; k < size; ++k) {
        const int shard = staggered(peers, k);
        const std::size_t at = shards.first(shard, round);
        const Total* const theirs = peers.at(sums, shard);
        for_each_element(block, shards.slice(block, shard, round), [&](std::size_t i) {
          out[at + i] = finish(static_cast<Accumulator<T>>(theirs[i]));
        });
      }
    }
    call.finish(shards.rounds.count);
  }
};

}  // namespace iridium
