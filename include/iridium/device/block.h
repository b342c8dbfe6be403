// A block of threads: what a kernel is written for.
#pragma once

#include <cstdint>

#include "iridium/device/target.h"

namespace iridium {

/// One block of a grid, with `Threads` threads on a GPU. On a CPU it is one fiber, or in split mode
/// four. What is block-collective is called by all threads of the block with the same arguments.
template <int Threads>
class BlockOf {
 public:
  static constexpr int gpu_threads = Threads;

  IR_DEVICE explicit BlockOf(Seat* seat = nullptr) : seat_(seat) {}

  /// This block's index in the grid.
  IR_DEVICE int index() const { return target::block_index(seat_); }
  /// How many blocks the grid has.
  IR_DEVICE int count() const { return target::block_count(seat_); }
  /// This thread's index in the block.
  IR_DEVICE int thread() const { return target::thread_index(seat_); }
  IR_DEVICE int thread_count() const { return target::thread_count<Threads>(seat_); }
  IR_DEVICE bool is_leader() const { return thread() == 0; }
  /// A thread that can do slow things on the side while the leader waits for others; the leader
  /// itself in blocks too small for both.
  IR_DEVICE int clerk() const { return target::clerk_index<Threads>(seat_); }

  /// function(i), for this thread's share of the numbers below `count`, which is at most `Limit`:
  /// for small work, one item per thread.
  template <int Limit, class Function>
  IR_DEVICE void share(int count, Function function) const {
    target::share<Threads, Limit>(seat_, count, function);
  }

  /// Every thread's accesses before it come before every thread's accesses after it.
  /// Block-collective.
  IR_DEVICE void sync() const { target::sync(seat_); }
  /// `sync`, and whether any thread passed true. Block-collective.
  [[nodiscard]] IR_DEVICE bool any(bool mine) const { return target::any(seat_, mine); }
  /// `any`, and `word` becomes that of thread `source` on every thread. Block-collective; `sync`
  /// before the next one.
  [[nodiscard]] IR_DEVICE bool any(bool mine, std::uint64_t& word, int source = 0) const {
    return target::any(seat_, mine, word, source);
  }
  /// Lets other blocks run, in loops that wait. `again`: nothing has changed since the last call.
  IR_DEVICE void pause(bool again) const { target::pause(seat_, again); }
  /// Waits until the kernels in front of this one in the stream have ended, and what they wrote can
  /// be seen. Kernels begin so, but those that say that they do it themselves (`begins_early`).
  IR_DEVICE void await_previous() const { target::await_previous(seat_); }
  /// Lets the stream's next kernel take its place on the GPU, as soon as every block has called
  /// this or ended; it begins only when this kernel has ended. For kernels that wait for other
  /// ranks: not before they know that every rank's has started, whose place it could take, and only
  /// if they then wait for nothing else.
  IR_DEVICE void let_next_start() const { target::let_next_start(seat_); }
  /// Nanoseconds since some point in the past.
  IR_DEVICE std::uint64_t nanoseconds() const { return target::nanoseconds(seat_); }

  /// For the functions of `iridium::target`.
  IR_DEVICE Seat* seat() const { return seat_; }

 private:
  Seat* seat_;
};

/// The block most kernels are written for: enough threads to fill a GPU's memory bus with few
/// blocks.
using Block = BlockOf<512>;

}  // namespace iridium
