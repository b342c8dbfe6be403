#pragma once

#include "collectives/copy_arrays.h"
#include "collectives/shards.h"
#include "iridium/device/lane_call.h"

namespace iridium {

/// Every member sends every other one the same number of bytes, one part behind the other.
struct EqualParts {
  std::size_t bytes;

  IR_DEVICE std::size_t send_first(int to) const { return static_cast<std::size_t>(to) * bytes; }
  IR_DEVICE std::size_t send_bytes(int) const { return bytes; }
  IR_DEVICE std::size_t receive_first(int from) const { return send_first(from); }
  IR_DEVICE std::size_t receive_bytes(int) const { return bytes; }
};

/// Bytes and their places as the caller says.
struct GivenParts {
  struct Part {
    std::size_t first;
    std::size_t bytes;
  };
  Part sent[max_team_size];
  Part received[max_team_size];

  IR_DEVICE std::size_t send_first(int to) const { return sent[to].first; }
  IR_DEVICE std::size_t send_bytes(int to) const { return sent[to].bytes; }
  IR_DEVICE std::size_t receive_first(int from) const { return received[from].first; }
  IR_DEVICE std::size_t receive_bytes(int from) const { return received[from].bytes; }
};

/// Members write what is for another one to its scratch, a slot per source, and what is for
/// themselves to their output; after a barrier they take what the others wrote to their own.
template <class Parts>
struct StagedAllToAll {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  const std::uint8_t* in;
  std::uint8_t* out;
  Rounds rounds;  ///< of the largest part
  Parts parts;

  IR_DEVICE void operator()(Block block) const {
    const Peers& peers = lane.peers();
    const int me = peers.rank();
    LaneCall call(lane, block);
    ArrayCopies<std::uint8_t, Block::gpu_threads> copies(block, peers.size());
    IR_ROLLED for (std::uint32_t round = 0; round < rounds.count; ++round) {
      const std::size_t first = rounds.first(round);
      const auto sent_to = [&](int to) { return slice(block, parts.send_bytes(to), first); };
      const auto source_of = [&](int i) {
        const int to = staggered(peers, i);
        const Slice part = sent_to(to);
        return ArraySource<std::uint8_t>{in + parts.send_first(to) + first + part.first,
                                         part.count};
      };
      if (!copies.start_round(call, round, source_of)) return;
      auto* const staged = lane.scratch<std::uint8_t>(call.parity(round));
      const auto slot = [&](int source) {
        return staged + static_cast<std::size_t>(source) * rounds.chunk;
      };
      const auto output = [&](int from) { return out + parts.receive_first(from) + first; };
      copies.finish(source_of, [&](int i) {
        const int to = staggered(peers, i);
        return (to == me ? output(me) : peers.at(slot(me), to)) + sent_to(to).first;
      });
      // Addresses are looked up behind the barrier: before it, that was slower here.
      if (!call.barrier()) return;
      block.let_next_start();
      copy_arrays<std::uint8_t>(block, peers.size() - 1, [&](int i) {
        const int from = staggered(peers, i + 1);
        const Slice part = slice(block, parts.receive_bytes(from), first);
        return ArrayCopy<std::uint8_t>{output(from) + part.first, slot(from) + part.first,
                                       part.count};
      });
    }
    call.finish(rounds.count);
  }

 private:
  /// This block's part of those of `bytes` bytes that belong to the round that begins at `first`.
  IR_DEVICE Slice slice(Block block, std::size_t bytes, std::size_t first) const {
    return rounds.share(block, in_round(bytes, first));
  }
  IR_DEVICE std::size_t in_round(std::size_t bytes, std::size_t first) const {
    if (bytes <= first) return 0;
    return bytes - first < rounds.chunk ? bytes - first : rounds.chunk;
  }
};

/// Members write to everybody's output.
struct DirectAllToAll {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  const std::uint8_t* in;
  std::uint8_t* out;
  Rounds rounds;  ///< one, of a part's bytes

  IR_DEVICE void operator()(Block block) const {
    const Peers& peers = lane.peers();
    LaneCall call(lane, block);
    if (!call.enter()) return;
    block.let_next_start();
    const std::size_t bytes = rounds.total;
    const Slice part = rounds.slice(block, 0);
    std::uint8_t* const slot = out + static_cast<std::size_t>(peers.rank()) * bytes + part.first;
    copy_arrays<std::uint8_t>(block, peers.size(), [&](int i) {
      const int to = staggered(peers, i);
      return ArrayCopy<std::uint8_t>{
          peers.at(slot, to), in + static_cast<std::size_t>(to) * bytes + part.first, part.count};
    });
    call.leave();
  }
};

}  // namespace iridium
