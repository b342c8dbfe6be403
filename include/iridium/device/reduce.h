// What all threads of a block have, made one.
#pragma once

#include "iridium/device/block_memory.h"
#include "iridium/device/number.h"

namespace iridium {

namespace detail {
struct ReductionMemory;
}

/// Combines the values of all threads of the block; every thread gets the result. Block-collective;
/// on return the block's threads have met, as at `sync`.
///
/// `op(a, b)` is associative and commutative. The order is always the same, so that the same values
/// on the same number of threads give the same bits. Takes block memory for one T per thread of a
/// GPU's block, the same for all reductions of a type.
template <class T, int Threads, class Op>
[[nodiscard]] IR_DEVICE T reduce(BlockOf<Threads> block, T value, Op op) {
  const int threads = block.thread_count();
  if (threads == 1) return value;
  // Few enough for every thread to combine the rest by itself. On a CPU, so few that the four
  // threads of a split block take both steps.
  constexpr int most_partials = target::has_whole_blocks ? 2 : 32;
  const int partials = threads < most_partials ? threads : most_partials;
  const BlockMemory<T, Threads, detail::ReductionMemory> values(block);
  // No thread reads the values of the reduction before any more.
  block.sync();
  values[block.thread()] = value;
  block.sync();
  if (block.thread() < partials) {
    T total = value;
    IR_ROLLED for (int i = block.thread() + partials; i < threads; i += partials) {
      total = op(total, values[i]);
    }
    values[block.thread()] = total;
  }
  block.sync();
  T total = values[0];
  for (int i = 1; i < partials; ++i) total = op(total, values[i]);
  return total;
}

/// `reduce` with `add`: integers wrap. Of fp16 and bf16 every step rounds: convert them before.
template <Number T, int Threads>
[[nodiscard]] IR_DEVICE T sum(BlockOf<Threads> block, T value) {
  return reduce(block, value, [](T a, T b) { return add(a, b); });
}
/// `reduce` with `minimum` and `maximum`, which keep a NaN.
template <Number T, int Threads>
[[nodiscard]] IR_DEVICE T min(BlockOf<Threads> block, T value) {
  return reduce(block, value, [](T a, T b) { return minimum(a, b); });
}
template <Number T, int Threads>
[[nodiscard]] IR_DEVICE T max(BlockOf<Threads> block, T value) {
  return reduce(block, value, [](T a, T b) { return maximum(a, b); });
}

/// Whether any thread passes true, or all do. Block-collective, and the block's threads meet, as at
/// `sync`.
template <int Threads>
[[nodiscard]] IR_DEVICE bool any_of(BlockOf<Threads> block, bool mine) {
  return block.any(mine);
}
template <int Threads>
[[nodiscard]] IR_DEVICE bool all_of(BlockOf<Threads> block, bool mine) {
  return !block.any(!mine);
}

}  // namespace iridium
