#pragma once

#include "collectives/reduce_packets.h"
#include "collectives/shards.h"

namespace iridium {

/// Everybody sends all its elements to everybody, in packets: no barrier.
template <Number T>
struct PacketAllReduce {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  const T* in;
  T* out;
  std::size_t count;
  PacketShare share;
  ReduceOp op;

  IR_DEVICE void operator()(Block block) const {
    const Peers& peers = lane.peers();
    const std::uint32_t early = share.first(block) + static_cast<std::uint32_t>(block.thread());
    PacketElements<T> early_word = {};
    LaneCall call(lane, block);
    const auto load_early = [&] {
      if (early < share.words) early_word = load_word(in, early, count);
    };
    if (!call.begin(load_early)) return;
    share.for_each(block, [&](std::uint32_t word) {
      const auto packet =
          __builtin_bit_cast(Packet, word == early ? early_word : load_word(in, word, count));
      IR_ROLLED for (int i = 1; i < peers.size(); ++i) {
        send_packet(call, staggered(peers, i), word, packet);
      }
    });
    bool received = true;
    share.for_each(block, [&](std::uint32_t word) {
      const auto own = load_word(in, word, count);
      store_word(out, word, count, reduce_packets(call, op, word, own, received));
      block.let_next_start();
    });
    if (all_received(call, !received, share)) call.finish();
  }
};

}  // namespace iridium
