#pragma once

#include "collectives/copy_arrays.h"
#include "collectives/reduction.h"
#include "collectives/shards.h"
#include "iridium/device/lane_call.h"

namespace iridium {

/// Everybody copies its elements to its scratch and reads the others': one barrier per round, and
/// no other, since the next round uses the other half of the scratch.
template <Number T, int Vectors>
struct OneShotAllReduce {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  const T* in;
  T* out;
  Rounds rounds;
  ReduceOp op;

  IR_DEVICE void operator()(Block block) const {
    const Peers& peers = lane.peers();
    LaneCall call(lane, block);
    ArrayCopies<T, Block::gpu_threads> copies(block, 1);
    IR_ROLLED for (std::uint32_t round = 0; round < rounds.count; ++round) {
      const Slice part = rounds.slice(block, round);
      const T* const from = in + rounds.first(round) + part.first;
      T* const to = out + rounds.first(round) + part.first;
      const auto source_of = [&](int) { return ArraySource<T>{from, part.count}; };
      if (!copies.start_round(call, round, source_of)) return;
      T* const staged = lane.scratch<T>(call.parity(round)) + part.first;
      copies.finish(source_of, [&](int) { return staged; });
      const std::uint32_t arrival = call.arrive();
      // Of an input that allows no vectors, the copy does.
      const int own = target::allows_vectors(block.seat(), from) ? peers.rank() : -1;
      auto reduction = slice_reduction<Vectors, T>(
          block, op, part.count, peers.size(),
          [&](int place) { return place == own ? from : peers.at(staged, place); }, 1,
          [&](int) { return to; });
      reduction.prepare();
      if (!call.await(arrival)) return;
      block.let_next_start();
      reduction.run();
    }
    call.finish(rounds.count);
  }
};

}  // namespace iridium
