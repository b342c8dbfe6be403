#pragma once

#include "collectives/reduce_packets.h"
#include "collectives/shards.h"

namespace iridium {

/// Everybody sends every other member its shard, in packets, and the reduced shard to everybody in
/// more packets: no barrier, and less traffic than when everything goes to everybody. No shard is
/// empty, so that all hear from all.
template <Number T>
struct PacketTwoShotAllReduce {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  const T* in;
  T* out;
  std::size_t count;
  PacketShare share;  ///< of a shard's words; the last shard's may be beyond the array
  ReduceOp op;

  IR_DEVICE void operator()(Block block) const {
    constexpr int batch = 4;
    const Peers& peers = lane.peers();
    const int me = peers.rank();
    const std::uint32_t results = share.words;  // slots behind those of the shards
    const auto at = [&](int shard, std::uint32_t word) {
      return static_cast<std::size_t>(shard) * share.words + word;
    };
    LaneCall call(lane, block);
    if (!call.begin()) return;
    share.for_each(block, [&](std::uint32_t word) {
      send_words<batch>(call, word,
                        [&](int place) { return load_word(in, at(place, word), count); });
    });
    bool received = true;
    share.for_each(block, [&](std::uint32_t word) {
      const auto own = load_word(in, at(me, word), count);
      const auto total = reduce_packets(call, op, word, own, received);
      // Nobody shall take for a result what is none.
      if (!received) return;
      block.let_next_start();
      IR_ROLLED for (int i = 1; i < peers.size(); ++i) {
        send_packet(call, staggered(peers, i), results + word, __builtin_bit_cast(Packet, total));
      }
      store_word(out, at(me, word), count, total);
    });
    share.for_each(block, [&](std::uint32_t word) {
      IR_ROLLED for (int first = 0; first < peers.size(); first += batch) {
        Packet packets[batch] = {};
        received = received && receive_packets<batch>(call, first, results + word, packets);
        for (int i = 0; i < batch; ++i)
          if (first + i < peers.size() && first + i != me)
            store_word(out, at(first + i, word), count,
                       __builtin_bit_cast(PacketElements<T>, packets[i]));
      }
    });
    if (all_received(call, !received, share)) call.finish();
  }
};

}  // namespace iridium
