#pragma once

#include "collectives/reduction.h"
#include "collectives/shards.h"
#include "iridium/device/lane_call.h"

namespace iridium {

/// Everybody copies its elements to its scratch and reads everybody's: one barrier per round, and
/// no other, since the next round uses the other half of the scratch.
template <Number T, int Vectors>
struct OneShotAllReduce {
  static constexpr int blocks_per_processor = 2;
  Lane lane;
  const T* in;
  T* out;
  Rounds rounds;
  ReduceOp op;

  IR_DEVICE void operator()(MovingBlock block) const {
    const Peers& peers = lane.peers();
    LaneCall call(lane, block);
    if (!call.begin()) return;
    IR_ROLLED for (std::uint32_t round = 0; round < rounds.count; ++round) {
      const Slice part = rounds.slice(block, round);
      const T* const from = in + rounds.first(round);
      T* const to = out + rounds.first(round);
      T* const staged = reinterpret_cast<T*>(lane.scratch(call.parity(round)));
      copy(block, staged + part.first, from + part.first, part.count);
      if (!call.barrier()) return;
      reduce_slice<Vectors, T>(
          block, op, part.count, peers.size(),
          [&](int place) { return peers.at(staged + part.first, place); }, 1,
          [&](int) { return to + part.first; });
    }
    call.finish(rounds.count);
  }
};

}  // namespace iridium
