// Packets: small messages that carry their own flag, so that no barrier is needed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iridium/device/lane_call.h"

namespace iridium {

/// Eight bytes of payload and the call's tag, twice: each half is accepted on its own tag, so a
/// torn packet is never taken for a whole one, and no payload value means "empty".
struct Packet {
  std::uint32_t data[2];
};

/// Sends `packet` to slot `slot` that the member at `place` keeps for this rank. One thread; a slot
/// is written once per call and round.
template <int Threads>
IR_DEVICE void send_packet(const LaneCall<Threads>& call, int place, std::size_t slot,
                           Packet packet, std::uint32_t round = 0) {
  const Lane& lane = call.lane();
  const std::uint64_t tag = std::uint64_t{call.tag(round)} << 32;
  target::Pair* const mine = lane.packets(call.parity(round), lane.peers().rank()) + slot;
  target::store_pair(call.block().seat(), lane.peers().at(mine, place),
                     {packet.data[0] | tag, packet.data[1] | tag});
}

/// Waits for slot `slot` of the member at `source`. One thread. False when the team has failed or
/// the wait expired; the caller then brings it to the block's leader (`block.any`) and ends with
/// `explain_packet`.
template <int Threads>
[[nodiscard]] IR_DEVICE bool receive_packet(const LaneCall<Threads>& call, int source,
                                            std::size_t slot, Packet& packet,
                                            std::uint32_t round = 0) {
  const Lane& lane = call.lane();
  const std::uint32_t tag = call.tag(round);
  const target::Pair* const from = lane.packets(call.parity(round), source) + slot;
  // Ended by the source's `send_packet` of the same call.
  return detail::poll(call.block(), lane, [&] {
    const target::Pair pair = target::load_pair(call.block().seat(), from);
    packet = {{static_cast<std::uint32_t>(pair.first), static_cast<std::uint32_t>(pair.second)}};
    return pair.first >> 32 == tag && pair.second >> 32 == tag;
  });
}

/// Waits for slot `slot` of members [first, first + Batch) that exist, but not of this one, whose
/// packet is left alone; packets[i] is that of member first + i. Otherwise as `receive_packet`.
template <int Batch, int Threads>
[[nodiscard]] IR_DEVICE bool receive_packets(const LaneCall<Threads>& call, int first,
                                             std::size_t slot, Packet* packets,
                                             std::uint32_t round = 0) {
  const Lane& lane = call.lane();
  const std::uint32_t tag = call.tag(round);
  const auto is_peer = [&](int source) {
    return source < lane.peers().size() && source != lane.peers().rank();
  };
  return detail::poll(call.block(), lane, [&] {
    // All are asked before one answer is looked at.
    target::Pair pairs[Batch];
    for (int i = 0; i < Batch; ++i)
      if (is_peer(first + i))
        pairs[i] = target::load_pair(call.block().seat(),
                                     lane.packets(call.parity(round), first + i) + slot);
    bool arrived = true;
    for (int i = 0; i < Batch; ++i) {
      if (!is_peer(first + i)) continue;
      arrived = arrived && pairs[i].first >> 32 == tag && pairs[i].second >> 32 == tag;
      packets[i] = {{static_cast<std::uint32_t>(pairs[i].first),
                     static_cast<std::uint32_t>(pairs[i].second)}};
    }
    return arrived;
  });
}

/// Fails the team after a `receive_packet` that returned false, naming the members whose slot
/// `slot` is empty; unless `from` is -1, only that member can be missing. One thread.
template <int Threads>
IR_DEVICE void explain_packet(const LaneCall<Threads>& call, std::size_t slot,
                              std::uint32_t round = 0, int from = -1) {
  const Lane& lane = call.lane();
  detail::CallFailure failure;
  failure.step = call.step();
  failure.expected = call.tag(round);
  failure.flags = reinterpret_cast<const std::byte*>(lane.packets(call.parity(round), 0) + slot);
  failure.stride = lane.layout().packet_slots * sizeof(target::Pair);
  failure.are_packets = true;
  failure.only = from;
  detail::explain_call(call.block(), lane, failure);
}

}  // namespace iridium
