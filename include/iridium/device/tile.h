// Tiles: N elements spread over the threads of a block.
#pragma once

#include <cstddef>

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

/// Elements [first, first + N) of `from`, which has `count` elements; those beyond are zero.
/// Block-collective. 16-byte accesses where the tile is full and its address a multiple of 16.
template <int N, class T, int Threads>
[[nodiscard]] IR_DEVICE Tile<T, N, Threads> load(BlockOf<Threads> block, const T* from,
                                                 std::size_t first, std::size_t count) {
  Tile<T, N, Threads> tile;
  target::load_tile<N, vector_elements<T>, Threads>(block.seat(), tile.elements, from + first,
                                                    first < count ? count - first : 0);
  return tile;
}

/// Writes the tile to elements [first, first + N) of `to`, which has `count` elements; those beyond
/// are dropped. Block-collective.
template <class T, int N, int Threads, int Chunk>
IR_DEVICE void store(BlockOf<Threads> block, T* to, std::size_t first, std::size_t count,
                     const Tile<T, N, Threads, Chunk>& tile) {
  target::store_tile<N, Chunk, Threads>(block.seat(), to + first, tile.elements,
                                        first < count ? count - first : 0);
}

/// function(index of the element in the tile, element), for every element this thread holds.
template <class T, int N, int Threads, int Chunk, class Function>
IR_DEVICE void for_each(BlockOf<Threads> block, const Tile<T, N, Threads, Chunk>& tile,
                        Function function) {
  target::for_each_held<N, Chunk, Threads>(
      block.seat(), [&](int place, int held) { function(place, tile.elements[held]); });
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
