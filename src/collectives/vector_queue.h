// Vectors on their way from memory to a thread.
#pragma once

#include <cstddef>

#include "iridium/device/block.h"

namespace iridium {

/// The most vectors of 16 bytes that a thread of a GPU has on their way.
inline constexpr int max_queued_vectors = 4;

namespace detail {
struct QueueMemory {};
}  // namespace detail

/// Vectors that a thread of a GPU has asked for, first in, first out. They come to the block's own
/// memory and not to registers, so that loops over them need not be unrolled, and kernels keep
/// their registers. A thread has one at a time.
template <class T, int Depth, int Threads>
class VectorQueue {
 public:
  static_assert(Depth <= max_queued_vectors);
  static constexpr int depth = Depth;

  IR_DEVICE explicit VectorQueue(BlockOf<Threads> block) : thread_(block.thread()) {}

  /// Asks for the vector at `from`, or leaves its place empty. `Depth` at first, then one for each
  /// that was used.
  IR_DEVICE void push(const T* from, bool wanted) {
    if (wanted) target::fetch_vector(slot(), from);
    target::end_fetch();
    next_ = next_ + 1 == Depth ? 0 : next_ + 1;
  }
  /// Waits for the oldest vector, which stays where it is until the next `push`.
  IR_DEVICE const T* front() const {
    target::await_fetches<Depth - 1>();
    return slot();
  }

 private:
  IR_DEVICE T* slot() const {
    constexpr int vector_bytes = 16;
    std::byte* const memory = target::block_memory<detail::QueueMemory, std::byte,
                                                   max_queued_vectors * Threads * vector_bytes>();
    return reinterpret_cast<T*>(memory + (next_ * Threads + thread_) * vector_bytes);
  }

  int thread_;
  int next_ = 0;
};

}  // namespace iridium
