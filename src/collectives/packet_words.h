// Arrays as packets see them: words of eight bytes, whatever the element.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/stagger.h"
#include "iridium/device/packet.h"

namespace iridium {

/// What a packet carries.
template <class T>
struct PacketElements {
  static constexpr int size = static_cast<int>(sizeof(Packet) / sizeof(T));
  T elements[size];
};

namespace detail {
using AliasingWord [[gnu::may_alias]] = std::uint64_t;

template <class T>
IR_DEVICE bool is_whole_word(const T* array, std::size_t first, std::size_t count) {
  return reinterpret_cast<std::uintptr_t>(array) % sizeof(Packet) == 0 &&
         first + static_cast<std::size_t>(PacketElements<T>::size) <= count;
}
}  // namespace detail

/// Word `index` of an array of `count` elements; elements beyond it are zero.
template <class T>
IR_DEVICE PacketElements<T> load_word(const T* from, std::size_t index, std::size_t count) {
  constexpr int size = PacketElements<T>::size;
  const std::size_t first = index * size;
  if (detail::is_whole_word(from, first, count))
    return __builtin_bit_cast(
        PacketElements<T>,
        std::uint64_t{*reinterpret_cast<const detail::AliasingWord*>(from + first)});
  PacketElements<T> word = {};
  for (int i = 0; i < size; ++i)
    if (first + static_cast<std::size_t>(i) < count)
      word.elements[i] = from[first + static_cast<std::size_t>(i)];
  return word;
}

template <class T>
IR_DEVICE void store_word(T* to, std::size_t index, std::size_t count,
                          const PacketElements<T>& word) {
  constexpr int size = PacketElements<T>::size;
  const std::size_t first = index * size;
  if (detail::is_whole_word(to, first, count)) {
    *reinterpret_cast<detail::AliasingWord*>(to + first) = __builtin_bit_cast(std::uint64_t, word);
    return;
  }
  for (int i = 0; i < size; ++i)
    if (first + static_cast<std::size_t>(i) < count)
      to[first + static_cast<std::size_t>(i)] = word.elements[i];
}

/// The words of a call and which of them are this block's: as many as the lane has slots for, so
/// that one round is enough, and what members send in the next call tells that they have read all.
struct PacketShare {
  std::uint32_t words = 0;
  std::uint32_t part = 0;  ///< of a block

  /// function(word), for this thread's share of the block's words.
  template <int Threads, class Function>
  IR_DEVICE void for_each(BlockOf<Threads> block, Function function) const {
    const std::uint32_t begin = first(block);
    const std::uint32_t end = words - begin < part ? words : begin + part;
    target::point(block.seat());
    IR_ROLLED for (std::uint32_t word = begin + static_cast<std::uint32_t>(block.thread());
                   word < end; word += static_cast<std::uint32_t>(block.thread_count())) {
      function(word);
    }
  }
  /// The block's first word; `words` where it has none.
  template <int Threads>
  IR_DEVICE std::uint32_t first(BlockOf<Threads> block) const {
    const std::uint32_t begin = part * static_cast<std::uint32_t>(block.index());
    return begin < words ? begin : words;
  }
};

/// Sends every other member the word that word_for(place) loads, in `slot`. One thread; several are
/// loaded before one is sent.
template <int Batch, int Threads, class WordFor>
IR_DEVICE void send_words(const LaneCall<Threads>& call, std::size_t slot, WordFor word_for) {
  const Peers& peers = call.lane().peers();
  IR_ROLLED for (int first = 1; first < peers.size(); first += Batch) {
    Packet packets[Batch];
    for (int i = 0; i < Batch; ++i)
      if (first + i < peers.size())
        packets[i] = __builtin_bit_cast(Packet, word_for(staggered(peers, first + i)));
    for (int i = 0; i < Batch; ++i)
      if (first + i < peers.size())
        send_packet(call, staggered(peers, first + i), slot, packets[i]);
  }
}

/// Whether no thread passed true; else fails the team, naming the members whose packets for this
/// block have not come: all, or `from`. Block-collective.
template <int Threads>
[[nodiscard]] IR_DEVICE bool all_received(const LaneCall<Threads>& call, bool failed,
                                          const PacketShare& share, int from = -1) {
  if (!call.block().any(failed)) return true;
  if (call.block().is_leader()) explain_packet(call, share.first(call.block()), 0, from);
  return false;
}

}  // namespace iridium
