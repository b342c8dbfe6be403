// What captures on host streams record.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/backend.h"
#include "backend/host/block_scheduler.h"

namespace iridium {

/// Work of a stream; kernels run on the scheduler of whichever stream runs it.
using Operation = std::function<void(BlockScheduler&)>;

struct HostGraph final : detail::GraphImpl {
  std::size_t node_count() const override { return operations.size(); }

  std::vector<Operation> operations;
  std::vector<std::shared_ptr<const detail::Resource>> retained;
};

/// A capture, shared by the stream that began it and those that have joined it by waiting for an
/// event of it. Their branches are recorded one after another, in the order of the calls.
/// Thread safety: all of it.
class HostCapture {
 public:
  /// What comes before a point: of each stream's operations, the last one.
  using Past = std::map<const void*, std::size_t>;

  bool is_over() const;
  /// Whether it was recorded: false when the capture is over.
  bool add(const void* stream, Operation& operation);
  bool add(const void* stream, const HostGraph& graph);
  bool retain(std::shared_ptr<const detail::Resource> resource);
  Past past_of(const void* stream) const;
  /// The stream's next operations come behind `past`. False when the capture is over.
  bool join(const void* stream, const Past& past);
  /// Whether the stream has waited for all that others have recorded.
  bool is_behind_all(const void* stream) const;
  /// Returns what was recorded; null when the capture is over.
  std::shared_ptr<const HostGraph> end();

 private:
  void note_last(const void* stream);

  mutable std::mutex mutex_;
  std::shared_ptr<HostGraph> graph_ = std::make_shared<HostGraph>();  ///< null when it is over
  std::map<const void*, Past> pasts_;                                 ///< by stream
  Past last_;                                                         ///< of every stream
};

}  // namespace iridium
