// The words through which the host and kernels tell each other that a team has failed.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backend/backend.h"
#include "iridium/device/lane.h"
#include "runtime/heap.h"
#include "runtime/stream_registry.h"

namespace iridium {

/// Hands out `LaneStatus` words in memory that kernels reach. A word given back is handed out again
/// when the work submitted meanwhile is done. Thread safety: all of it.
class StatusPool : public std::enable_shared_from_this<StatusPool> {
 public:
  StatusPool(Backend& backend, std::shared_ptr<Heap> heap, std::shared_ptr<StreamRegistry> streams);

  /// All zero. Given back by dropping the last reference, from any thread.
  std::shared_ptr<LaneStatus> take();

 private:
  struct Pending {
    std::vector<LaneStatus*> words;
    Markers work;
  };

  /// Moves words whose kernels are done to `free_`. Streams are marked here and not where a word is
  /// given back, since that may be a thread on which a device's driver forbids it.
  void collect();
  void give_back(LaneStatus* word);

  Backend& backend_;
  const std::shared_ptr<Heap> heap_;  ///< keeps the memory
  const std::shared_ptr<StreamRegistry> streams_;
  std::mutex mutex_;
  std::vector<LaneStatus*> free_;
  std::vector<LaneStatus*> returned_;
  std::vector<Pending> pending_;
};

}  // namespace iridium
