#pragma once

#include "collectives/copy_arrays.h"
#include "collectives/packet_words.h"
#include "collectives/shards.h"
#include "collectives/spread.h"
#include "iridium/device/lane_call.h"

namespace iridium {

/// What every all-gather has: bytes, since elements are only moved. Member s's part of the output
/// begins at s × rounds.total.
struct GatherBuffers {
  const std::uint8_t* in;
  std::uint8_t* out;
  Rounds rounds;

  IR_DEVICE std::uint8_t* part(int place, std::uint32_t round) const {
    return out + static_cast<std::size_t>(place) * rounds.total + rounds.first(round);
  }
};

/// Members copy their bytes to their scratch, and to their part of the own output on the way; after
/// a barrier they read everybody's.
struct StagedPullGather {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  GatherBuffers buffers;

  IR_DEVICE void operator()(Block block) const {
    const Peers& peers = lane.peers();
    const Rounds& rounds = buffers.rounds;
    LaneCall call(lane, block);
    ArrayCopies<std::uint8_t, Block::gpu_threads> own(block, 1);
    ArrayCopies<std::uint8_t, Block::gpu_threads> others(block, peers.size() - 1);
    IR_ROLLED for (std::uint32_t round = 0; round < rounds.count; ++round) {
      const Slice part = rounds.slice(block, round);
      const auto input = [&](int) {
        return ArraySource<std::uint8_t>{buffers.in + rounds.first(round) + part.first, part.count};
      };
      const auto output = [&](int i) {
        return buffers.part(staggered(peers, i), round) + part.first;
      };
      if (!own.start_round(call, round, input)) return;
      auto* const staged = lane.scratch<std::uint8_t>(call.parity(round)) + part.first;
      own.finish(input, [&](int) { return staged; }, output);
      const auto theirs = [&](int i) {
        return ArraySource<std::uint8_t>{peers.at(staged, staggered(peers, i + 1)), part.count};
      };
      const std::uint32_t arrival = call.arrive();
      others.prepare(theirs);
      if (!call.await(arrival)) return;
      block.let_next_start();
      others.start();
      others.finish(theirs, [&](int i) { return output(i + 1); });
    }
    call.finish(rounds.count);
  }
};

/// Members write their bytes to everybody's scratch; after a barrier they find everybody's in their
/// own.
template <int Vectors>
struct StagedPushGather {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  GatherBuffers buffers;

  IR_DEVICE void operator()(Block block) const {
    const Peers& peers = lane.peers();
    const Rounds& rounds = buffers.rounds;
    LaneCall call(lane, block);
    if (!call.begin()) return;
    IR_ROLLED for (std::uint32_t round = 0; round < rounds.count; ++round) {
      const Slice part = rounds.slice(block, round);
      auto* const staged = lane.scratch<std::uint8_t>(call.parity(round));
      const auto slot = [&](int source) {
        return staged + static_cast<std::size_t>(source) * rounds.chunk + part.first;
      };
      spread<Vectors>(
          block, peers.size(),
          [&](int i) {
            return i == 0 ? buffers.part(peers.rank(), round) + part.first
                          : peers.at(slot(peers.rank()), staggered(peers, i));
          },
          buffers.in + rounds.first(round) + part.first, part.count);
      if (!call.barrier()) return;
      block.let_next_start();
      copy_arrays<std::uint8_t>(block, peers.size() - 1, [&](int i) {
        const int source = staggered(peers, i + 1);
        return ArrayCopy<std::uint8_t>{buffers.part(source, round) + part.first, slot(source),
                                       part.count};
      });
    }
    call.finish(rounds.count);
  }
};

/// Members write their bytes to everybody's output.
template <int Vectors>
struct DirectPushGather {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  GatherBuffers buffers;

  IR_DEVICE void operator()(Block block) const {
    const Peers& peers = lane.peers();
    LaneCall call(lane, block);
    if (!call.enter()) return;
    block.let_next_start();
    const Slice part = buffers.rounds.slice(block, 0);
    std::uint8_t* const own = buffers.part(peers.rank(), 0) + part.first;
    spread<Vectors>(
        block, peers.size(), [&](int i) { return peers.at(own, staggered(peers, i)); },
        buffers.in + part.first, part.count);
    call.leave();
  }
};

/// Members read everybody's input.
struct DirectPullGather {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  GatherBuffers buffers;

  IR_DEVICE void operator()(Block block) const {
    const Peers& peers = lane.peers();
    LaneCall call(lane, block);
    if (!call.enter()) return;
    block.let_next_start();
    const Slice part = buffers.rounds.slice(block, 0);
    copy_arrays<std::uint8_t>(block, peers.size(), [&](int i) {
      const int place = staggered(peers, i);
      return ArrayCopy<std::uint8_t>{buffers.part(place, 0) + part.first,
                                     peers.at(buffers.in + part.first, place), part.count};
    });
    call.leave();
  }
};

/// Everybody sends all its bytes to everybody, in packets.
struct PacketGather {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  const std::uint8_t* in;
  std::uint8_t* out;
  std::size_t bytes;   ///< that this call is for
  std::size_t stride;  ///< from one member's part to the next
  PacketShare share;

  IR_DEVICE void operator()(Block block) const {
    constexpr int batch = 4;
    const Peers& peers = lane.peers();
    const auto part = [&](int place) { return out + static_cast<std::size_t>(place) * stride; };
    LaneCall call(lane, block);
    if (!call.begin()) return;
    share.for_each(block, [&](std::uint32_t word) {
      const auto own = load_word(in, word, bytes);
      IR_ROLLED for (int i = 1; i < peers.size(); ++i) {
        send_packet(call, staggered(peers, i), word, __builtin_bit_cast(Packet, own));
      }
      store_word(part(peers.rank()), word, bytes, own);
    });
    bool received = true;
    share.for_each(block, [&](std::uint32_t word) {
      IR_ROLLED for (int first = 0; first < peers.size(); first += batch) {
        Packet packets[batch] = {};
        received = received && receive_packets<batch>(call, first, word, packets);
        for (int i = 0; i < batch; ++i)
          if (first + i < peers.size() && first + i != peers.rank())
            store_word(part(first + i), word, bytes,
                       __builtin_bit_cast(PacketElements<std::uint8_t>, packets[i]));
      }
      block.let_next_start();
    });
    if (all_received(call, !received, share)) call.finish();
  }
};

}  // namespace iridium
