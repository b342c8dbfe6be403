// Many copies at once.
#pragma once

#include <cstddef>

#include "iridium/device/copy.h"

namespace iridium {

/// One of many copies.
template <class T>
struct ArrayCopy {
  T* to;
  const T* from;
  std::size_t count;
};

namespace detail {

/// The share of thread `thread` of `threads` in a copy.
template <class T>
IR_DEVICE void copy_share(const ArrayCopy<T>& array, std::size_t thread, std::size_t threads) {
  constexpr int batch = target::loads_in_flight;
  constexpr std::size_t chunk = vector_elements<T>;
  const bool vectors = target::allows_vectors(array.to) && target::allows_vectors(array.from);
  const std::size_t whole = vectors ? array.count - array.count % chunk : 0;
  const std::size_t step = threads * chunk;
  IR_ROLLED for (std::size_t at = thread * chunk; at < whole; at += batch * step) {
    alignas(16) T held[batch][chunk];
    for (int i = 0; i < batch; ++i)
      if (at + static_cast<std::size_t>(i) * step < whole)
        target::load_vector<Cache::normal>(held[i],
                                           array.from + at + static_cast<std::size_t>(i) * step);
    for (int i = 0; i < batch; ++i)
      if (at + static_cast<std::size_t>(i) * step < whole)
        target::store_vector<Cache::normal>(array.to + at + static_cast<std::size_t>(i) * step,
                                            held[i]);
  }
  IR_ROLLED for (std::size_t at = whole + thread; at < array.count; at += threads) {
    array.to[at] = array.from[at];
  }
}

}  // namespace detail

/// Does copy_of(i), for i below `arrays`. Block-collective. On a GPU every array has warps of its
/// own, so that many short copies take no longer than one.
template <class T, int Threads, class CopyOf>
IR_DEVICE void copy_arrays(BlockOf<Threads> block, int arrays, CopyOf copy_of) {
  target::point(block.seat());
  if constexpr (target::loads_in_flight == 1) {
    for (int i = 0; i < arrays; ++i) {
      const ArrayCopy<T> array = copy_of(i);
      copy(block, array.to, array.from, array.count);
    }
  } else {
    constexpr int warp = 32;
    constexpr int warps = Threads / warp;
    const int groups = arrays < warps ? arrays : warps;
    if (groups == 0) return;
    const int threads = warps / groups * warp;
    const int group = block.thread() / threads;
    if (group >= groups) return;
    IR_ROLLED for (int i = group; i < arrays; i += groups) {
      detail::copy_share(copy_of(i), static_cast<std::size_t>(block.thread() - group * threads),
                         static_cast<std::size_t>(threads));
    }
  }
}

}  // namespace iridium
