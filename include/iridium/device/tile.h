// Tiles: N elements spread over the threads of a block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "iridium/device/block.h"
#include "iridium/device/number.h"

namespace iridium {

/// `N` elements in the registers of a block; on a CPU, in an array the compiler vectorises. Thread
/// t holds chunks t, t + Threads, …, each of `Chunk` elements, so that a full tile moves between
/// memory and registers in 16-byte accesses whatever the type.
///
/// Made by `load` and by arithmetic on other tiles of the same shape. A kernel wants
/// N = Threads × (16 / sizeof(T)) or a multiple: smaller tiles leave threads without work.
template <Number T, int N, int Threads = Block::gpu_threads, int Chunk = vector_elements<T>>
class Tile {
  static_assert(N > 0 && N % Chunk == 0, "a tile has whole chunks");

 public:
  static constexpr int size = N;
  static constexpr int held = target::held_elements<N, Chunk, Threads>;

  /// All elements `value`.
  IR_DEVICE static Tile filled(T value) {
    Tile tile;
    for (int i = 0; i < held; ++i) tile.elements[i] = value;
    return tile;
  }

  /// function(element), for every element.
  template <class Function>
  IR_DEVICE auto map(Function function) const {
    Tile<decltype(function(T())), N, Threads, Chunk> result;
    for (int i = 0; i < held; ++i) result.elements[i] = function(elements[i]);
    return result;
  }
  /// function(element, other's element), for every pair.
  template <class Function, class U>
  IR_DEVICE auto zip(const Tile<U, N, Threads, Chunk>& other, Function function) const {
    Tile<decltype(function(T(), U())), N, Threads, Chunk> result;
    for (int i = 0; i < held; ++i) result.elements[i] = function(elements[i], other.elements[i]);
    return result;
  }

  /// What this thread holds; which elements these are is the target's matter.
  alignas(16) T elements[held];
};

/// A mask tells, by an element's index in its array, whether it is to be accessed: one that is not
/// loads as zero, and is not stored. This one lets all pass.
struct Everywhere {
  IR_DEVICE constexpr bool operator()(std::size_t) const { return true; }
};
inline constexpr Everywhere everywhere;

namespace detail {

template <class T, int Chunk>
inline constexpr bool has_vectors = Chunk * sizeof(T) % 16 == 0;

/// Whether a tile is known to be all there, without asking a mask for every element.
template <int N, class Mask>
IR_DEVICE bool is_full(std::size_t first, std::size_t count, Mask) {
  return std::is_same_v<Mask, Everywhere> && count >= N && first <= count - N;
}
/// Whether elements [first, first + Chunk) are all within `count` and the mask.
template <int Chunk, class Mask>
IR_DEVICE bool is_whole(std::size_t first, std::size_t count, Mask mask) {
  bool whole = count >= Chunk && first <= count - Chunk;
  for (int i = 0; i < Chunk; ++i) whole = whole && mask(first + static_cast<std::size_t>(i));
  return whole;
}

template <Cache cache, int Chunk, class T>
IR_DEVICE void load_chunk(T* to, const T* from) {
  for (int i = 0; i < Chunk; i += vector_elements<T>) target::load_vector<cache>(to + i, from + i);
}
template <Cache cache, int Chunk, class T>
IR_DEVICE void store_chunk(T* to, const T* from) {
  for (int i = 0; i < Chunk; i += vector_elements<T>) target::store_vector<cache>(to + i, from + i);
}

/// A chunk of which not all can be accessed, or not at once: `index` of its first element.
template <int Chunk, class T, class Mask>
IR_DEVICE void load_elements(T* to, const T* from, std::size_t index, std::size_t count,
                             Mask mask) {
  for (int i = 0; i < Chunk; ++i) {
    const std::size_t at = index + static_cast<std::size_t>(i);
    to[i] = at < count && mask(at) ? from[i] : T();
  }
}
template <int Chunk, class T, class Mask>
IR_DEVICE void store_elements(T* to, const T* from, std::size_t index, std::size_t count,
                              Mask mask) {
  for (int i = 0; i < Chunk; ++i) {
    const std::size_t at = index + static_cast<std::size_t>(i);
    if (at < count && mask(at)) to[i] = from[i];
  }
}

}  // namespace detail

/// Elements [first, first + N) of `from`, which has `count` elements; those beyond are zero.
/// Block-collective. 16-byte accesses where the tile is full and its address a multiple of 16.
template <int N, class T, int Threads, class Mask = Everywhere, Cache C = Cache::normal>
[[nodiscard]] IR_DEVICE Tile<T, N, Threads> load(BlockOf<Threads> block, const T* from,
                                                 std::size_t first, std::size_t count,
                                                 Mask mask = {}, CacheTag<C> = {}) {
  constexpr int chunk = vector_elements<T>;
  Seat* const seat = block.seat();
  Tile<T, N, Threads> tile;
  target::point(seat);
  target::begin_tile<N>(seat, tile.elements);
  const bool vectors = target::allows_vectors(from + first);
  if (vectors && detail::is_full<N>(first, count, mask)) {
    target::load_tile<N, chunk, Threads, C>(seat, tile.elements, from + first);
    return tile;
  }
  target::for_each_chunk<N, chunk, Threads>(seat, [&](int place, int held) {
    const std::size_t index = first + static_cast<std::size_t>(place);
    if (vectors && detail::is_whole<chunk>(index, count, mask))
      detail::load_chunk<C, chunk>(tile.elements + held, from + index);
    else
      detail::load_elements<chunk>(tile.elements + held, from + index, index, count, mask);
  });
  return tile;
}

/// Writes the tile to elements [first, first + N) of `to`, which has `count` elements; those beyond
/// are dropped. Block-collective.
template <class T, int N, int Threads, int Chunk, class Mask = Everywhere, Cache C = Cache::normal>
IR_DEVICE void store(BlockOf<Threads> block, T* to, std::size_t first, std::size_t count,
                     const Tile<T, N, Threads, Chunk>& tile, Mask mask = {}, CacheTag<C> = {}) {
  constexpr bool can_be_vectors = detail::has_vectors<T, Chunk>;
  Seat* const seat = block.seat();
  target::point(seat);
  const bool vectors = can_be_vectors && target::allows_vectors(to + first);
  if constexpr (can_be_vectors) {
    if (vectors && detail::is_full<N>(first, count, mask))
      return target::store_tile<N, Chunk, Threads, C>(seat, to + first, tile.elements);
  }
  target::for_each_chunk<N, Chunk, Threads>(seat, [&](int place, int held) {
    const std::size_t index = first + static_cast<std::size_t>(place);
    if constexpr (can_be_vectors) {
      if (vectors && detail::is_whole<Chunk>(index, count, mask))
        return detail::store_chunk<C, Chunk>(to + index, tile.elements + held);
    }
    detail::store_elements<Chunk>(to + index, tile.elements + held, index, count, mask);
  });
}

/// function(index of the element in the tile, element), for every element this thread holds.
template <class T, int N, int Threads, int Chunk, class Function>
IR_DEVICE void for_each(BlockOf<Threads> block, const Tile<T, N, Threads, Chunk>& tile,
                        Function function) {
  target::for_each_chunk<N, Chunk, Threads>(block.seat(), [&](int place, int held) {
    for (int i = 0; i < Chunk; ++i) function(place + i, tile.elements[held + i]);
  });
}

/// Every element as `To`; see `convert` for numbers.
template <Number To, Number T, int N, int Threads, int Chunk>
[[nodiscard]] IR_DEVICE Tile<To, N, Threads, Chunk> convert(
    const Tile<T, N, Threads, Chunk>& tile) {
  return tile.map([](T value) { return convert<To>(value); });
}

// Element by element, as the functions of the same names for numbers: integers wrap, minimum and
// maximum keep a NaN.
template <Number T, int N, int Threads, int Chunk>
[[nodiscard]] IR_DEVICE Tile<T, N, Threads, Chunk> operator+(const Tile<T, N, Threads, Chunk>& a,
                                                             const Tile<T, N, Threads, Chunk>& b) {
  return a.zip(b, [](T x, T y) { return add(x, y); });
}
template <Number T, int N, int Threads, int Chunk>
[[nodiscard]] IR_DEVICE Tile<T, N, Threads, Chunk> operator-(const Tile<T, N, Threads, Chunk>& a,
                                                             const Tile<T, N, Threads, Chunk>& b) {
  return a.zip(b, [](T x, T y) { return subtract(x, y); });
}
template <Number T, int N, int Threads, int Chunk>
[[nodiscard]] IR_DEVICE Tile<T, N, Threads, Chunk> operator*(const Tile<T, N, Threads, Chunk>& a,
                                                             const Tile<T, N, Threads, Chunk>& b) {
  return a.zip(b, [](T x, T y) { return multiply(x, y); });
}
template <Number T, int N, int Threads, int Chunk>
[[nodiscard]] IR_DEVICE Tile<T, N, Threads, Chunk> minimum(const Tile<T, N, Threads, Chunk>& a,
                                                           const Tile<T, N, Threads, Chunk>& b) {
  return a.zip(b, [](T x, T y) { return minimum(x, y); });
}
template <Number T, int N, int Threads, int Chunk>
[[nodiscard]] IR_DEVICE Tile<T, N, Threads, Chunk> maximum(const Tile<T, N, Threads, Chunk>& a,
                                                           const Tile<T, N, Threads, Chunk>& b) {
  return a.zip(b, [](T x, T y) { return maximum(x, y); });
}

/// Who does the work of a block-collective call.
enum class By {
  block,  ///< this block, all of it
  grid,   ///< all blocks of the grid together, each a share: for large copies
};

namespace detail {

/// The first element and the step of a thread, or block, that takes every n-th of some pieces.
struct Stride {
  std::size_t first;
  std::size_t step;
};
template <int Threads>
IR_DEVICE Stride block_stride(BlockOf<Threads> block, By by, std::size_t piece) {
  const auto blocks = static_cast<std::size_t>(by == By::grid ? block.count() : 1);
  const auto index = static_cast<std::size_t>(by == By::grid ? block.index() : 0);
  return {index * piece, blocks * piece};
}
template <int Threads>
IR_DEVICE Stride thread_stride(BlockOf<Threads> block, By by, std::size_t piece) {
  const auto threads = static_cast<std::size_t>(block.thread_count());
  const Stride blocks = block_stride(block, by, threads * piece);
  return {blocks.first + static_cast<std::size_t>(block.thread()) * piece, blocks.step};
}

/// How many elements to copy one by one before both addresses are multiples of 16 bytes; all of
/// them where they never are.
template <class T>
IR_DEVICE std::size_t misaligned_elements(const T* to, const T* from, std::size_t count) {
  if (target::allows_vectors(to) && target::allows_vectors(from)) return 0;
  const auto beyond = reinterpret_cast<std::uintptr_t>(to) % 16;
  if (reinterpret_cast<std::uintptr_t>(from) % 16 != beyond) return count;
  const std::size_t head = (16 - beyond) / sizeof(T);
  return head < count ? head : count;
}

/// `copy`, one element at a time.
template <class T, int Threads, class Mask>
IR_DEVICE void copy_elements(BlockOf<Threads> block, T* to, const T* from, std::size_t count, By by,
                             Mask mask) {
  const Stride elements = thread_stride(block, by, 1);
  IR_ROLLED for (std::size_t i = elements.first; i < count; i += elements.step) {
    if (mask(i)) to[i] = from[i];
  }
}

/// `copy` of elements [first, count), at addresses that allow vectors.
template <Cache C, class T, int Threads, class Mask>
IR_DEVICE void copy_vectors(BlockOf<Threads> block, T* to, const T* from, std::size_t first,
                            std::size_t count, By by, Mask mask) {
  constexpr int chunk = vector_elements<T>;
  // Four vectors per thread on their way at a time: what it takes to fill a GPU's memory bus.
  constexpr std::size_t tile = std::size_t{4} * Threads * chunk;
  if constexpr (std::is_same_v<Mask, Everywhere>) {
    const std::size_t end = first + (count - first) / tile * tile;
    const Stride tiles = block_stride(block, by, tile);
    IR_ROLLED for (std::size_t i = first + tiles.first; i < end; i += tiles.step) {
      target::copy_tile<static_cast<int>(tile), chunk, Threads, C>(block.seat(), to + i, from + i);
    }
    first = end;
  }
  const Stride chunks = thread_stride(block, by, chunk);
  IR_ROLLED for (std::size_t i = first + chunks.first; i < count; i += chunks.step) {
    alignas(16) T vector[chunk];
    if (is_whole<chunk>(i, count, mask)) {
      load_chunk<C, chunk>(vector, from + i);
      store_chunk<C, chunk>(to + i, vector);
    } else {
      IR_ROLLED for (std::size_t k = i; k < i + chunk && k < count; ++k) {
        if (mask(k)) to[k] = from[k];
      }
    }
  }
}

}  // namespace detail

/// Copies `count` elements, in 16-byte accesses where the two addresses allow it. Block-collective.
/// `By::grid` splits the work as it likes: where a block must find what the same block wrote on a
/// peer, `slice_of` says which part is whose.
template <class T, int Threads, class Mask = Everywhere, Cache C = Cache::normal>
IR_DEVICE void copy(BlockOf<Threads> block, T* to, const T* from, std::size_t count,
                    By by = By::block, Mask mask = {}, CacheTag<C> = {}) {
  target::point(block.seat());
  if constexpr (16 % sizeof(T) == 0) {
    const std::size_t head = detail::misaligned_elements(to, from, count);
    detail::copy_elements(block, to, from, head, by, mask);
    detail::copy_vectors<C>(block, to, from, head, count, by, mask);
  } else {
    detail::copy_elements(block, to, from, count, by, mask);
  }
}

/// A part of a vector.
struct Slice {
  std::size_t first = 0;
  std::size_t count = 0;
};

/// The part of `count` elements of T that is this block's when all blocks of the grid share the
/// work. Parts begin at multiples of 16 bytes where elements allow it; the same grid has the same
/// parts on every rank.
template <class T, int Threads>
IR_DEVICE Slice slice_of(BlockOf<Threads> block, std::size_t count) {
  const auto blocks = static_cast<std::size_t>(block.count());
  // Elements of which no whole number is 16 bytes are counted one by one.
  constexpr std::size_t unit = 16 % sizeof(T) == 0 ? vector_elements<T> : 1;
  const std::size_t units = count / unit + (count % unit != 0 ? 1 : 0);
  const std::size_t part = (units / blocks + (units % blocks != 0 ? 1 : 0)) * unit;
  const std::size_t first = part * static_cast<std::size_t>(block.index());
  if (first >= count) return {count, 0};
  return {first, count - first < part ? count - first : part};
}

}  // namespace iridium
