#pragma once

#include "collectives/reduction.h"
#include "collectives/shards.h"
#include "iridium/device/lane_call.h"

namespace iridium {

/// Partial results go around: the member behind a shard's owner begins with its own elements, and
/// each next one adds its own to what its predecessor has, so that the owner is the last. Results
/// then go around likewise. Partial results are `Accumulator`s, and stay where their member wrote
/// them until the round is over.
template <Number T>
struct RingAllReduce {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  const T* in;
  T* out;
  Shards shards;
  ReduceOp op;

  IR_DEVICE void operator()(Block block) const {
    const int size = lane.peers().size();
    LaneCall call(lane, block);
    if (!call.begin()) return;
    IR_ROLLED for (std::uint32_t round = 0; round < shards.rounds.count; ++round) {
      IR_ROLLED for (int step = 0; step < size; ++step) {
        reduce(block, call.parity(round), round, step);
        if (!call.barrier()) return;
        block.let_next_start();
      }
      IR_ROLLED for (int step = 1; step < size; ++step) {
        pass_on(block, call.parity(round), round, step);
        if (step + 1 < size && !call.barrier()) return;
      }
    }
    call.finish(shards.rounds.count);
  }

 private:
  using Partial = Accumulator<T>;

  IR_DEVICE Partial* partials(std::uint32_t parity) const { return lane.scratch<Partial>(parity); }
  IR_DEVICE T* results(std::uint32_t parity) const {
    return reinterpret_cast<T*>(partials(parity) + shards.staged(lane.peers().size()));
  }

  /// In step `size - 1` the shard is this member's own, and the result its own.
  IR_DEVICE void reduce(Block block, std::uint32_t parity, std::uint32_t round, int step) const {
    const Peers& peers = lane.peers();
    const int size = peers.size();
    const int shard = (peers.rank() + 2 * size - 1 - step) % size;
    const int before = (peers.rank() + size - 1) % size;
    const Slice part = shards.slice(block, shard, round);
    Partial* const mine = partials(parity) + shards.staged(shard);
    const Partial* const theirs = peers.at(mine, before);
    const std::size_t at = shards.first(shard, round);
    for_each_element(block, part, [&](std::size_t i) {
      Partial value = convert<Partial>(in[at + i]);
      if (step > 0) with_combine(op, [&](auto combine) { value = combine(theirs[i], value); });
      if (step + 1 < size) {
        mine[i] = value;
      } else {
        const T result = Finish<T>(op, size)(value);
        results(parity)[shards.staged(shard) + i] = result;
        out[at + i] = result;
      }
    });
  }

  IR_DEVICE void pass_on(Block block, std::uint32_t parity, std::uint32_t round, int step) const {
    const Peers& peers = lane.peers();
    const int size = peers.size();
    const int shard = (peers.rank() + size - step) % size;
    const Slice part = shards.slice(block, shard, round);
    T* const mine = results(parity) + shards.staged(shard);
    const T* const theirs = peers.at(mine, (peers.rank() + size - 1) % size);
    const std::size_t at = shards.first(shard, round);
    for_each_element(block, part, [&](std::size_t i) {
      const T result = theirs[i];
      mine[i] = result;
      out[at + i] = result;
    });
  }
};

}  // namespace iridium
