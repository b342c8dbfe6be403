#pragma once

#include "collectives/copy_arrays.h"
#include "collectives/packet_words.h"
#include "collectives/shards.h"
#include "iridium/device/lane_call.h"

namespace iridium {

/// The root sends packets. It hears from nobody by that: a barrier ends the call.
struct PacketBroadcast {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  const std::uint8_t* in;
  std::uint8_t* out;
  std::size_t bytes;
  PacketShare share;
  int root;

  IR_DEVICE void operator()(Block block) const {
    const Peers& peers = lane.peers();
    LaneCall call(lane, block);
    if (!call.begin()) return;
    bool received = true;
    share.for_each(block, [&](std::uint32_t word) {
      PacketElements<std::uint8_t> value;
      if (peers.rank() == root) {
        value = load_word(in, word, bytes);
        IR_ROLLED for (int i = 1; i < peers.size(); ++i) {
          send_packet(call, staggered(peers, i), word, __builtin_bit_cast(Packet, value));
        }
      } else {
        Packet packet = {};
        received = received && receive_packet(call, root, word, packet);
        value = __builtin_bit_cast(PacketElements<std::uint8_t>, packet);
      }
      store_word(out, word, bytes, value);
    });
    if (all_received(call, !received, share, root)) call.leave();
  }
};

/// The root copies to its scratch; after a barrier the others read it there.
struct StagedBroadcast {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  const std::uint8_t* in;
  std::uint8_t* out;
  Rounds rounds;
  int root;

  IR_DEVICE void operator()(Block block) const {
    const Peers& peers = lane.peers();
    const bool is_root = peers.rank() == root;
    LaneCall call(lane, block);
    ArrayCopies<std::uint8_t, Block::gpu_threads> copies(block, 1);
    IR_ROLLED for (std::uint32_t round = 0; round < rounds.count; ++round) {
      const Slice part = rounds.slice(block, round);
      const std::size_t first = rounds.first(round) + part.first;
      const auto staged = [&](int) {
        return lane.scratch<std::uint8_t>(call.parity(round)) + part.first;
      };
      const auto output = [&](int) { return out + first; };
      const auto source = [&](int) {
        return ArraySource<std::uint8_t>{is_root ? in + first : peers.at(staged(0), root),
                                         part.count};
      };
      if (is_root) {
        if (!copies.start_round(call, round, source)) return;
        copies.finish(source, staged, output);
      } else if (round == 0 && !call.begin()) {
        return;
      }
      const std::uint32_t arrival = call.arrive();
      if (!is_root) copies.prepare(source);
      if (!call.await(arrival)) return;
      block.let_next_start();
      if (is_root) continue;
      copies.start();
      copies.finish(source, output);
    }
    call.finish(rounds.count);
  }
};

/// Everybody reads the root's input.
struct DirectBroadcast {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  const std::uint8_t* in;
  std::uint8_t* out;
  Rounds rounds;  ///< one
  int root;

  IR_DEVICE void operator()(Block block) const {
    LaneCall call(lane, block);
    if (!call.enter()) return;
    block.let_next_start();
    const Slice part = rounds.slice(block, 0);
    const std::uint8_t* const from = lane.peers().at(in, root);
    // In place, the root must not even write what is there: the others are reading it.
    if (from != out)
      copy_arrays<std::uint8_t>(block, 1, [&](int) {
        return ArrayCopy<std::uint8_t>{out + part.first, from + part.first, part.count};
      });
    call.leave();
  }
};

}  // namespace iridium
