// Copies of whole vectors, by a block or a grid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "iridium/device/tile.h"

namespace iridium {

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
IR_DEVICE std::size_t misaligned_elements(const Seat* seat, const T* to, const T* from,
                                          std::size_t count) {
  if (target::allows_vectors(seat, to) && target::allows_vectors(seat, from)) return 0;
  const auto beyond = reinterpret_cast<std::uintptr_t>(to) % 16;
  if (reinterpret_cast<std::uintptr_t>(from) % 16 != beyond || beyond % sizeof(T) != 0)
    return count;
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
    target::point(block.seat());
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
    const std::size_t head = detail::misaligned_elements(block.seat(), to, from, count);
    detail::copy_elements(block, to, from, head, by, mask);
    target::point(block.seat());
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
