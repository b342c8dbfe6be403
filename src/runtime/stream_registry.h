// The streams a context knows.
#pragma once

#include <condition_variable>
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
  void add(const std::shared_ptr<detail::StreamImpl>& stream);
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
  std::vector<std::shared_ptr<detail::StreamImpl>> live() const;

  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<Entry> streams_;
  Markers last_work_;  ///< of streams that have gone
};

}  // namespace iridium
