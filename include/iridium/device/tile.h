// Tiles: N elements spread over the threads of a block.
#pragma once

#include <cstddef>
#include <type_traits>

#include "iridium/device/block.h"
#include "iridium/device/number.h"

namespace iridium {

namespace detail {
struct TileInside;
}

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
    for (int i = 0; i < held; ++i) tile.elements_[i] = value;
    return tile;
  }

  /// function(element), for every element; also for values that are no elements, where threads have
  /// room for more than they hold: only its result may matter.
  template <class Function>
  IR_DEVICE auto map(Function function) const {
    Tile<decltype(function(T())), N, Threads, Chunk> result;
    for (int i = 0; i < held; ++i) result.elements_[i] = function(elements_[i]);
    return result;
  }
  /// function(element, other's element), for every pair; otherwise as `map`.
  template <class Function, class U>
  IR_DEVICE auto zip(const Tile<U, N, Threads, Chunk>& other, Function function) const {
    Tile<decltype(function(T(), U())), N, Threads, Chunk> result;
    for (int i = 0; i < held; ++i) result.elements_[i] = function(elements_[i], other.elements_[i]);
    return result;
  }

 private:
  friend struct detail::TileInside;
  template <Number, int, int, int>
  friend class Tile;

  /// What this thread holds, with room for what only other threads do: which elements these are is
  /// the target's matter, and `for_each` tells.
  alignas(16) T elements_[held];
};

/// A mask tells, by an element's index in its array, whether it is to be accessed: one that is not
/// loads as zero, and is not stored. This one lets all pass.
struct Everywhere {
  IR_DEVICE constexpr bool operator()(std::size_t) const { return true; }
};
inline constexpr Everywhere everywhere;

namespace detail {

struct TileInside {
  template <class AnyTile>
  IR_DEVICE static auto* elements(AnyTile& tile) {
    return tile.elements_;
  }
};
/// A tile's own array, for code that knows which elements the target has put there.
template <class AnyTile>
IR_DEVICE auto* elements_of(AnyTile& tile) {
  return TileInside::elements(tile);
}

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
  target::begin_tile<N>(seat, detail::elements_of(tile));
  const bool vectors = target::allows_vectors(seat, from + first);
  if (vectors && detail::is_full<N>(first, count, mask)) {
    target::load_tile<N, chunk, Threads, C>(seat, detail::elements_of(tile), from + first);
    return tile;
  }
  target::for_each_chunk<N, chunk, Threads>(seat, [&](int place, int held) {
    const std::size_t index = first + static_cast<std::size_t>(place);
    if (vectors && detail::is_whole<chunk>(index, count, mask))
      detail::load_chunk<C, chunk>(detail::elements_of(tile) + held, from + index);
    else
      detail::load_elements<chunk>(detail::elements_of(tile) + held, from + index, index, count,
                                   mask);
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
  const bool vectors = can_be_vectors && target::allows_vectors(seat, to + first);
  if constexpr (can_be_vectors) {
    if (vectors && detail::is_full<N>(first, count, mask))
      return target::store_tile<N, Chunk, Threads, C>(seat, to + first, detail::elements_of(tile));
  }
  target::for_each_chunk<N, Chunk, Threads>(seat, [&](int place, int held) {
    const std::size_t index = first + static_cast<std::size_t>(place);
    if constexpr (can_be_vectors) {
      if (vectors && detail::is_whole<Chunk>(index, count, mask))
        return detail::store_chunk<C, Chunk>(to + index, detail::elements_of(tile) + held);
    }
    detail::store_elements<Chunk>(to + index, detail::elements_of(tile) + held, index, count, mask);
  });
}

/// function(index of the element in the tile, element), for every element this thread holds.
template <class T, int N, int Threads, int Chunk, class Function>
IR_DEVICE void for_each(BlockOf<Threads> block, const Tile<T, N, Threads, Chunk>& tile,
                        Function function) {
  target::for_each_chunk<N, Chunk, Threads>(block.seat(), [&](int place, int held) {
    for (int i = 0; i < Chunk; ++i) function(place + i, detail::elements_of(tile)[held + i]);
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

}  // namespace iridium
