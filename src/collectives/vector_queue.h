// Vectors on their way from memory to a thread.
#pragma once

#include <cstddef>

#include "iridium/device/block.h"

/// Before a function that makes an address also where nothing is there to be fetched: empty arrays
/// may be null, and clang's checks object to a place beside null.
#if defined(__clang__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define IR_UNUSED_ADDRESSES __attribute__((no_sanitize("pointer-overflow")))
#else
#define IR_UNUSED_ADDRESSES
#endif

namespace iridium {

/// The most vectors of 16 bytes that a thread has in flight.
inline constexpr int max_queued_vectors = 4;

namespace detail {
struct QueueMemory {};
}  // namespace detail

/// Vectors that a thread has asked for, first in, first out. They come to the block's own memory
/// and not to registers, so that loops over them need not be unrolled, and kernels keep their
/// registers. A thread has one at a time. Whole blocks, whose loops are others, have none.
template <class T, int Depth, int Threads>
class VectorQueue {
 public:
  static_assert(Depth <= max_queued_vectors && (Depth & (Depth - 1)) == 0);
  static constexpr int depth = Depth;

  IR_DEVICE explicit VectorQueue(BlockOf<Threads> block) : block_(block) {
    if (target::is_whole(block.seat())) return;
    memory_ = target::block_address(
        target::block_memory<detail::QueueMemory, std::byte,
                             max_queued_vectors * Threads * vector_bytes>(block.seat()) +
        block.thread() * vector_bytes);
  }

  /// Asks for the vector at `from`, or leaves its place empty. `Depth` at first, then one for each
  /// that was read.
  IR_DEVICE void push(const T* from, bool wanted) {
    if (wanted) target::fetch_vector(block_.seat(), memory_ + next_, from);
    target::end_fetch(block_.seat());
    const unsigned stride = static_cast<unsigned>(block_.thread_count()) * vector_bytes;
    next_ = (next_ + stride) % (Depth * stride);
  }
  /// Waits for the oldest vector. `to`: 16 bytes.
  template <class To>
  IR_DEVICE void read(To* to) const {
    target::await_fetches<Depth - 1>(block_.seat());
    target::read_vector(to, memory_ + next_);
  }

 private:
  static constexpr int vector_bytes = 16;

  target::BlockAddress memory_ = {};
  unsigned next_ = 0;  ///< where the oldest vector is, and the next will be
  BlockOf<Threads> block_;
};

}  // namespace iridium
