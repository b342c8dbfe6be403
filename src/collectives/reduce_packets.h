// Reductions of words that travel in packets.
#pragma once

#include "collectives/packet_words.h"
#include "collectives/reduction.h"

namespace iridium {

/// Every member's packet in `slot`, combined in the order of places; this member's is `own`. False
/// in `received` when one has not come. One thread.
template <class T, int Threads>
IR_DEVICE PacketElements<T> reduce_packets(const LaneCall<Threads>& call, ReduceOp op,
                                           std::uint32_t slot, PacketElements<T> own,
                                           bool& received) {
  constexpr int batch = 4;
  constexpr int size = PacketElements<T>::size;
  const Peers& peers = call.lane().peers();
  Accumulator<T> totals[size] = {};
  IR_ROLLED for (int first = 0; first < peers.size(); first += batch) {
    Packet packets[batch] = {};
    received = received && receive_packets<batch>(call, first, slot, packets);
    with_combine(op, [&](auto combine) {
      for (int i = 0; i < batch; ++i) {
        if (first + i >= peers.size()) break;
        const auto word =
            first + i == peers.rank() ? own : __builtin_bit_cast(PacketElements<T>, packets[i]);
        detail::accumulate<size>(totals, word.elements, first + i == 0, combine);
      }
    });
  }
  PacketElements<T> result;
  const Finish<T> finish(op, peers.size());
  for (int i = 0; i < size; ++i) result.elements[i] = finish(totals[i]);
  return result;
}

}  // namespace iridium
