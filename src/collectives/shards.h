// How a call's elements are divided among members, rounds and blocks: the same on every member.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/stagger.h"
#include "iridium/device/copy.h"

namespace iridium {

/// The elements of a call, cut into rounds that fit the lane.
struct Rounds {
  std::size_t total = 0;    ///< elements of the call
  std::size_t chunk = 0;    ///< elements of a round; the last one has the rest
  std::size_t part = 0;     ///< a block's share of a chunk
  std::uint32_t count = 0;  ///< rounds, at least one

  IR_DEVICE std::size_t first(std::uint32_t round) const { return round * chunk; }
  IR_DEVICE std::size_t size(std::uint32_t round) const {
    const std::size_t rest = total - first(round);
    return rest < chunk ? rest : chunk;
  }
  /// This block's share of the first `size` elements of a chunk. Shares begin where they do in a
  /// whole chunk: what a block finds in the lane two rounds later is what it left there itself, not
  /// what another block may still be reading.
  template <int Threads>
  IR_DEVICE Slice share(BlockOf<Threads> block, std::size_t size) const {
    const std::size_t begin = part * static_cast<std::size_t>(block.index());
    if (begin >= size) return {size, 0};
    return {begin, size - begin < part ? size - begin : part};
  }
  /// This block's share of a round.
  template <int Threads>
  IR_DEVICE Slice slice(BlockOf<Threads> block, std::uint32_t round) const {
    return share(block, size(round));
  }
};

/// An array cut into a shard per member, and every shard into rounds.
struct Shards {
  std::size_t total = 0;   ///< elements of the array
  std::size_t stride = 0;  ///< from one shard to the next; the last ones may be short or empty
  Rounds rounds;           ///< of the longest shard

  /// Where in the array the part of `shard` begins that is `round`'s.
  IR_DEVICE std::size_t first(int shard, std::uint32_t round) const {
    return static_cast<std::size_t>(shard) * stride + rounds.first(round);
  }
  /// Where a part of this shard begins in the scratch that all shards of a round share.
  IR_DEVICE std::size_t staged(int shard) const {
    return static_cast<std::size_t>(shard) * rounds.chunk;
  }
  /// How many elements of `shard` are `round`'s.
  IR_DEVICE std::size_t size(int shard, std::uint32_t round) const {
    const std::size_t begin = first(shard, round);
    const std::size_t shard_end = (static_cast<std::size_t>(shard) + 1) * stride;
    const std::size_t end = shard_end < total ? shard_end : total;
    if (begin >= end) return 0;
    return end - begin < rounds.chunk ? end - begin : rounds.chunk;
  }
  /// This block's share of that.
  template <int Threads>
  IR_DEVICE Slice slice(BlockOf<Threads> block, int shard, std::uint32_t round) const {
    return rounds.share(block, size(shard, round));
  }
};

/// function(index), for this thread's share of the block's part of some elements.
template <int Threads, class Function>
IR_DEVICE void for_each_element(BlockOf<Threads> block, const Slice& part, Function function) {
  const auto step = static_cast<std::size_t>(block.thread_count());
  const std::size_t end = part.first + part.count;
  target::point(block.seat());
  IR_ROLLED for (std::size_t i = part.first + static_cast<std::size_t>(block.thread()); i < end;
                 i += step) {
    function(i);
  }
}

}  // namespace iridium
