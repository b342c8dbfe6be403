// The streams a context knows.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backend/backend.h"

namespace iridium {

/// Points in several streams' work.
using Markers = std::vector<std::shared_ptr<const Marker>>;

/// Whether all of it is done. Never blocks.
bool all_reached(const Markers& work);

/// Thread safety: all of it.
class StreamRegistry : public std::enable_shared_from_this<StreamRegistry> {
 public:
  StreamRegistry();
  void add(const std::shared_ptr<detail::StreamImpl>& stream);
  /// Counts as submitted here, though its stream is not.
  void add_work(std::shared_ptr<const Marker> work);
  /// Whether the stream is surely here. Fast, and wrong at times for streams that several contexts
  /// use: `add` looks again.
  bool knows(const detail::StreamImpl& stream) const {
    return stream.last_registry.load(std::memory_order_relaxed) == id_;
  }
  bool any_capturing() const;
  /// The end of everything submitted so far, on every stream; none while a stream is capturing and
  /// cannot be marked.
  std::optional<Markers> mark_all();

 private:
  struct Entry {
    const detail::StreamImpl* id;
    std::weak_ptr<detail::StreamImpl> stream;
  };

  void stream_ended(const detail::StreamImpl* id, std::shared_ptr<const Marker> last_work);
  /// Under the lock.
  void keep_work(std::shared_ptr<const Marker> work);
  std::vector<std::shared_ptr<detail::StreamImpl>> live() const;

  const std::uint64_t id_;  ///< no other registry of this process has it
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<Entry> streams_;
  Markers last_work_;             ///< of streams that have gone, or were never here
  std::size_t pruning_size_ = 0;  ///< of `last_work_`, at which it is pruned
};

}  // namespace iridium
