// Memory that the threads of a block share.
#pragma once

#include <cstddef>
#include <type_traits>

#include "iridium/device/block.h"

namespace iridium {

/// The most bytes of block memory that a kernel can have, all its objects together.
inline constexpr std::size_t max_block_memory_bytes = 48 * 1024;

/// `N` objects of type T that all threads of a block share: on a GPU in its fast memory, on a CPU
/// shared by the block's fibers. No other block sees them. When the block begins they hold nothing
/// in particular; on a CPU, all bits are set (NaN, or -1), so that reading what nobody wrote shows.
///
///     BlockMemory<float, 512, struct Partials> partials(block);
///     partials[block.thread()] = mine;
///     block.sync();   // what other threads wrote is there
///
/// `Tag` names it, a type that need not be defined; declared in place, it belongs to the scope that
/// does so. Objects with the same T, N and Tag are the same memory, also in different calls of a
/// function: `sync` before another use. All others are apart.
///
/// A kernel's objects are at most `max_block_memory_bytes` together with what the functions it
/// calls have: `reduce` one T per thread, barriers and waits a few bytes. nvcc refuses more; on a
/// CPU, the stream's work fails with `invalid_argument`.
template <class T, int N, class Tag>
class BlockMemory {
 public:
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>,
                "objects in block memory are neither constructed nor destroyed");
  static_assert(alignof(T) <= 16, "block memory is aligned to 16 bytes");
  static_assert(N > 0 && sizeof(T) * static_cast<std::size_t>(N) <= max_block_memory_bytes,
                "more than a block can have: see max_block_memory_bytes");
  static constexpr int size = N;

  template <int Threads>
  IR_DEVICE explicit BlockMemory(BlockOf<Threads> block)
      : data_(target::block_memory<Tag, T, N>(block.seat())) {}

  IR_DEVICE T* data() const { return data_; }
  IR_DEVICE T& operator[](int index) const { return data_[index]; }

 private:
  T* data_;
};

}  // namespace iridium
