#pragma once

#include "collectives/reduce_packets.h"
#include "collectives/shards.h"

namespace iridium {

/// Everybody sends every other member its shard, in packets.
template <Number T>
struct PacketReduceScatter {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  const T* in;
  T* out;
  std::size_t count;   ///< elements of a shard that this call is for
  std::size_t stride;  ///< from one shard to the next
  PacketShare share;
  ReduceOp op;

  IR_DEVICE void operator()(Block block) const {
    const Peers& peers = lane.peers();
    const auto shard = [&](int place) { return in + static_cast<std::size_t>(place) * stride; };
    LaneCall call(lane, block);
    if (!call.begin()) return;
    share.for_each(block, [&](std::uint32_t word) {
      send_words<4>(call, word, [&](int place) { return load_word(shard(place), word, count); });
    });
    bool received = true;
    share.for_each(block, [&](std::uint32_t word) {
      const auto own = load_word(shard(peers.rank()), word, count);
      store_word(out, word, count, reduce_packets(call, op, word, own, received));
      block.let_next_start();
    });
    if (all_received(call, !received, share)) call.finish();
  }
};

}  // namespace iridium
