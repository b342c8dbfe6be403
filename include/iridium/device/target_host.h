// The CPU: a block is a fiber, atomics are the language's.
#pragma once

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "iridium/device/access.h"
#include "iridium/device/compiler.h"
#include "iridium/device/order.h"
#include "iridium/device/seat.h"

namespace iridium::target {

/// Polls between two looks at the clock and the abort words.
inline constexpr std::uint32_t polls_per_check = 64;

/// The fewest threads of a block that can work apart from the others.
inline constexpr int group_threads = 1;

/// Whether a block can be a single thread, for which loops are other than those of GPUs.
inline constexpr bool has_whole_blocks = true;
/// Whether this block is. In split mode loops are those that GPUs run.
IR_DEVICE inline bool is_whole(const Seat* seat) {
  return seat->threads == 1;
}

/// How many elements of a tile one thread holds: here all, whatever the number of threads.
template <int Count, int Chunk, int Threads>
inline constexpr int held_elements = Count;

IR_DEVICE inline int block_index(const Seat* seat) {
  return seat->block;
}
IR_DEVICE inline int block_count(const Seat* seat) {
  return seat->blocks;
}
IR_DEVICE inline int thread_index(const Seat* seat) {
  return seat->thread;
}
template <int Threads>
IR_DEVICE int thread_count(const Seat* seat) {
  return seat->threads;
}
template <int Threads>
IR_DEVICE int clerk_index(const Seat* seat) {
  return seat->threads - 1;
}

/// Calls `function(i)` for this thread's share of the numbers below `count`, which is at most
/// `Limit`.
template <int Threads, int Limit, class Function>
IR_DEVICE void share(const Seat* seat, int count, Function function) {
  for (int i = seat->thread; i < count; i += seat->threads) function(i);
}

IR_DEVICE inline void sync(Seat* seat) {
  std::uint64_t word = 0;
  if (seat->threads > 1) seat->meet(false, word, 0);
}
IR_DEVICE inline bool any(Seat* seat, bool mine, std::uint64_t& word, int source) {
  return seat->threads > 1 ? seat->meet(mine, word, source) : mine;
}
IR_DEVICE inline bool any(Seat* seat, bool mine) {
  std::uint64_t word = 0;
  return any(seat, mine, word, 0);
}
IR_DEVICE inline void pause(Seat* seat, bool again) {
  seat->pause(again);
}
IR_DEVICE inline std::uint64_t nanoseconds(Seat* seat) {
  return seat->now();
}
// Kernels begin here when those before them have ended.
template <class Kernel>
IR_DEVICE void fetch_arguments(const Kernel*) {}
IR_DEVICE inline void await_previous(Seat*) {}
IR_DEVICE inline void let_next_start(Seat*) {}
IR_DEVICE inline void point(Seat* seat) {
  if (seat->watched) seat->point();
}

constexpr std::memory_order language_order(Order order) {
  switch (order) {
    case Order::relaxed:
      return std::memory_order_relaxed;
    case Order::acquire:
      return std::memory_order_acquire;
    case Order::release:
      return std::memory_order_release;
    default:
      return std::memory_order_acq_rel;
  }
}

template <Order order, Scope scope, AtomicValue T>
IR_DEVICE T load(Seat* seat, const T* from) {
  static_assert(order == Order::relaxed || order == Order::acquire, "a load cannot release");
  if (seat->watched) seat->note_load(from, scope);
  return std::atomic_ref<T>(*const_cast<T*>(from)).load(language_order(order));
}

/// `store` without a point before it.
template <Order order, Scope scope, AtomicValue T>
IR_DEVICE void store_now(Seat* seat, T* to, T value) {
  if (seat->watched) seat->note_store(to, scope);
  std::atomic_ref<T>(*to).store(value, language_order(order));
}
template <Order order, Scope scope, AtomicValue T>
IR_DEVICE void store(Seat* seat, T* to, T value) {
  static_assert(order == Order::relaxed || order == Order::release, "a store cannot acquire");
  point(seat);
  store_now<order, scope>(seat, to, value);
}

/// For accesses with `told_order`: what the block has stored comes before them for whoever
/// acquires what they write. Here the accesses do so themselves: ThreadSanitizer knows no fences.
IR_DEVICE inline void release_stores(Seat*, bool) {}
inline constexpr Order told_order = Order::release;

/// Whether `update` can add numbers of this type.
template <class T>
inline constexpr bool can_add = true;

/// Returns what was there before.
template <AtomicOp op, Order order, Scope scope, class T>
IR_DEVICE T update(Seat* seat, T* to, T value) {
  point(seat);
  if (seat->watched) seat->note_update(to, scope);
  if constexpr (op == AtomicOp::add && std::integral<T>) {
    return std::atomic_ref<T>(*to).fetch_add(value, language_order(order));
  } else {
    const std::atomic_ref<T> there(*to);
    T before = there.load(std::memory_order_relaxed);
    while (!there.compare_exchange_weak(before, updated<op>(before, value), language_order(order),
                                        std::memory_order_relaxed)) {
    }
    return before;
  }
}

/// What was there; the exchange took place when that equals `expected`.
template <Order order, Scope scope, AtomicValue T>
IR_DEVICE T compare_exchange(Seat* seat, T* to, T expected, T desired) {
  point(seat);
  if (seat->watched) seat->note_update(to, scope);
  // Also where it fails it is a load with this order.
  std::atomic_ref<T>(*to).compare_exchange_strong(expected, desired, language_order(order));
  return expected;
}

/// Two 8-byte elements, each of which arrives whole.
struct alignas(16) Pair {
  std::uint64_t first;
  std::uint64_t second;
};

// Ordered: a packet tells that its sender's calls before this one are over. On a GPU the ends of
// kernels see to that.
IR_DEVICE inline Pair load_pair(Seat* seat, const Pair* from) {
  return {load<Order::acquire, Scope::system>(seat, &from->first),
          load<Order::acquire, Scope::system>(seat, &from->second)};
}
IR_DEVICE inline void store_pair(Seat* seat, Pair* to, Pair value) {
  // On a GPU either half can come first.
  const bool turned = seat->watched && reinterpret_cast<std::uintptr_t>(to) / sizeof(Pair) % 2 != 0;
  store_now<Order::release, Scope::system>(seat, turned ? &to->second : &to->first,
                                           turned ? value.second : value.first);
  point(seat);
  store_now<Order::release, Scope::system>(seat, turned ? &to->first : &to->second,
                                           turned ? value.first : value.second);
}

/// The part of `count` elements that thread `thread` of `threads` holds, in whole chunks.
struct Slice {
  int first;
  int last;
};
template <int Count, int Chunk>
IR_DEVICE Slice slice(const Seat* seat) {
  constexpr int chunks = Count / Chunk;
  return {chunks * seat->thread / seat->threads * Chunk,
          chunks * (seat->thread + 1) / seat->threads * Chunk};
}

/// Calls `function(place in the tile, index of its first element here)` for every chunk that this
/// thread holds.
template <int Count, int Chunk, int Threads, class Function>
IR_DEVICE void for_each_chunk(const Seat* seat, Function function) {
  const Slice mine = slice<Count, Chunk>(seat);
  for (int i = mine.first; i < mine.last; i += Chunk) function(i, i);
}

template <class... Values>
IR_DEVICE void settle(Values&...) {}

/// Its address tells memory of the block from other memory. Not constant: those may be merged.
template <class Tag, class T, int Count>
inline char block_memory_key = 0;
/// Memory of the block: `Count` objects, the same ones at every call with the same types.
template <class Tag, class T, int Count>
IR_DEVICE T* block_memory(Seat* seat) {
  // NOLINTNEXTLINE(bugprone-sizeof-expression): T can be a pointer.
  constexpr std::size_t bytes = Count * sizeof(T);
  return reinterpret_cast<T*>(seat->block_memory(&block_memory_key<Tag, T, Count>, bytes));
}
/// A place in the block's memory.
using BlockAddress = std::byte*;
template <class T>
IR_DEVICE BlockAddress block_address(T* memory) {
  return reinterpret_cast<std::byte*>(memory);
}
/// Begins to copy 16 bytes to the block's memory.
template <class T>
IR_DEVICE void fetch_vector(Seat* seat, BlockAddress to, const T* from) {
  seat->fetch_vector(to, from);
}
/// 16 bytes of the block's memory.
template <class T>
IR_DEVICE void read_vector(T* to, BlockAddress from) {
  std::memcpy(to, from, 16);
}
template <class T>
IR_DEVICE T* read_pointer(BlockAddress from) {
  T* pointer = nullptr;
  std::memcpy(static_cast<void*>(&pointer), from, sizeof(T*));
  return pointer;
}
/// What this thread has fetched since the last call belongs together.
IR_DEVICE inline void end_fetch(Seat* seat) {
  seat->end_fetch();
}
/// Waits for all but the last `Open` fetches that this thread has ended.
template <int Open>
IR_DEVICE void await_fetches(Seat* seat) {
  seat->await_fetches(Open);
}

/// Whether `load_vector` and `store_vector` can be used at this address. Whole blocks use them
/// everywhere.
template <class T>
IR_DEVICE bool allows_vectors(const Seat* seat, const T* address) {
  return is_whole(seat) || reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}
/// 16 bytes.
template <Cache cache, class T>
IR_DEVICE void load_vector(T* to, const T* from) {
  std::copy(from, from + vector_elements<T>, to);
}
template <Cache cache, class T>
IR_DEVICE void store_vector(T* to, const T* from) {
  std::copy(from, from + vector_elements<T>, to);
}

/// A whole tile, at an address that allows vectors.
template <int Count, int Chunk, int Threads, Cache cache, class T>
IR_DEVICE void load_tile(const Seat* seat, T* elements, const T* from) {
  const Slice mine = slice<Count, Chunk>(seat);
  std::copy(from + mine.first, from + mine.last, elements + mine.first);
}
template <int Count, int Chunk, int Threads, Cache cache, class T>
IR_DEVICE void store_tile(Seat* seat, T* to, const T* elements) {
  const Slice mine = slice<Count, Chunk>(seat);
  // Watched: one chunk, two, four and so on, with points between them.
  int piece = seat->watched ? Chunk : Count;
  for (int first = mine.first; first < mine.last; piece *= 2) {
    const int last = std::min(mine.last, first + piece);
    std::copy(elements + first, elements + last, to + first);
    first = last;
    point(seat);
  }
}

template <int Count, int Chunk, int Threads, Cache cache, class T>
IR_DEVICE void copy_tile(Seat* seat, T* to, const T* from) {
  point(seat);
  store_tile<Count, Chunk, Threads, cache>(seat, to, from);
}

/// Before a tile is loaded: what only other threads hold is NaN, and −1 of integers. On a GPU it
/// may be anything.
template <int Count, class T>
IR_DEVICE void begin_tile(const Seat* seat, T* elements) {
  if (seat->threads > 1) std::memset(static_cast<void*>(elements), 0xff, Count * sizeof(T));
}

}  // namespace iridium::target
