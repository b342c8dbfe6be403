// Where a fiber stands in the grid that it runs on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iridium/device/order.h"

namespace iridium {

/// A CPU block is one fiber, or in split mode several, each with a seat of its own. The library's
/// scheduler implements it; on a GPU there is none.
class Seat {
 public:
  int block = 0;         ///< index in the grid
  int blocks = 1;        ///< of the grid
  int thread = 0;        ///< index in the block
  int threads = 1;       ///< of the block: 1, or more in split mode
  bool watched = false;  ///< the scheduler wants to hear of accesses

  /// Lets other blocks run. `again`: nothing has changed since the last call.
  virtual void pause(bool again) = 0;
  /// All threads of the block come here before one goes on. Returns whether any passed true, and
  /// gives `word` of thread `source` to all.
  virtual bool meet(bool any, std::uint64_t& word, int source) = 0;
  /// Nanoseconds since some point in the past.
  virtual std::uint64_t now() = 0;
  /// A place where a watching scheduler may let others run.
  virtual void point() = 0;
  /// An atomic access, told to a watching scheduler: it knows which flags go between ranks.
  virtual void note_load(const void* address, Scope scope) = 0;
  virtual void note_store(const void* address, Scope scope) = 0;
  virtual void note_update(const void* address, Scope scope) = 0;  ///< reads and writes in one

  /// `bytes` bytes of the block's memory, at a multiple of 16: the same ones for all its threads,
  /// at every call with this key. All bits are set when the block begins.
  virtual std::byte* block_memory(const void* key, std::size_t bytes) = 0;
  /// Begins to copy 16 bytes to the block's memory, where all bits are set until they arrive. They
  /// are read and written by this thread at some later moment, at the latest when it waits for
  /// them.
  virtual void fetch_vector(std::byte* to, const void* from) = 0;
  /// What this thread has fetched since the last call belongs together.
  virtual void end_fetch() = 0;
  /// Waits for all but the last `open` fetches that this thread has ended.
  virtual void await_fetches(int open) = 0;

 protected:
  ~Seat() = default;
};

}  // namespace iridium
