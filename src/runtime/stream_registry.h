// The streams a context knows.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/backend.h"

namespace iridium {

/// Thread safety: all of it.
class StreamRegistry {
 public:
  void add(const std::shared_ptr<detail::StreamImpl>& stream) {
    const std::lock_guard lock(mutex_);
    std::erase_if(streams_, [](const auto& known) { return known.expired(); });
    const auto is_this = [&](const auto& known) { return known.lock() == stream; };
    if (std::none_of(streams_.begin(), streams_.end(), is_this)) streams_.push_back(stream);
  }

  bool any_capturing() const {
    const auto streams = live();
    return std::any_of(streams.begin(), streams.end(), [](const auto& stream) {
      return stream->capture_status() != CaptureStatus::none;
    });
  }

  /// The end of a stream's work that is not to be asked again.
  void remember(std::shared_ptr<const Marker> last_work) {
    const std::lock_guard lock(mutex_);
    last_work_.push_back(std::move(last_work));
  }

  /// The end of everything submitted so far, on every stream.
  std::vector<std::shared_ptr<const Marker>> mark_all() {
    std::vector<std::shared_ptr<const Marker>> markers;
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(last_work_, [](const auto& marker) { return marker->reached(); });
      markers = last_work_;
    }
    for (const auto& stream : live()) markers.push_back(stream->mark());
    return markers;
  }

 private:
  /// Streams are called without the lock: they have their own.
  std::vector<std::shared_ptr<detail::StreamImpl>> live() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<detail::StreamImpl>> streams;
    for (const auto& known : streams_)
      if (auto stream = known.lock()) streams.push_back(std::move(stream));
    return streams;
  }

  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<detail::StreamImpl>> streams_;
  std::vector<std::shared_ptr<const Marker>> last_work_;
};

}  // namespace iridium
