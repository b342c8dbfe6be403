#include "runtime/stream_registry.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace iridium {

bool all_reached(const Markers& work) {
  return std::all_of(work.begin(), work.end(),
                     [](const auto& marker) { return marker->reached(); });
}

namespace {
std::atomic<std::uint64_t> registries_made = 0;
constexpr std::size_t least_pruning_size = 16;
}  // namespace

StreamRegistry::StreamRegistry() : id_(++registries_made) {}

void StreamRegistry::add(const std::shared_ptr<detail::StreamImpl>& stream) {
  const std::lock_guard lock(mutex_);
  stream->last_registry.store(id_, std::memory_order_relaxed);
  // A stream that goes takes its entry away before its address can be another's.
  const auto known = [&](const Entry& entry) { return entry.id == stream.get(); };
  if (std::any_of(streams_.begin(), streams_.end(), known)) return;
  streams_.push_back({stream.get(), stream});
  stream->at_end([weak = weak_from_this()](const detail::StreamImpl* id, auto last_work) {
    if (const auto registry = weak.lock()) registry->stream_ended(id, std::move(last_work));
  });
}

bool StreamRegistry::any_capturing() const {
  const auto streams = live();
  return std::any_of(streams.begin(), streams.end(), [](const auto& stream) {
    return stream->capture_status() != CaptureStatus::none;
  });
}

std::optional<Markers> StreamRegistry::mark_all() {
  Markers markers;
  {
    std::unique_lock lock(mutex_);
    // A stream that is going on another thread is about to leave the end of its work here.
    ended_.wait(lock, [&] {
      return std::none_of(streams_.begin(), streams_.end(),
                          [](const Entry& entry) { return entry.stream.expired(); });
    });
    std::erase_if(last_work_, [](const auto& marker) { return marker->reached(); });
    markers = last_work_;
  }
  for (const auto& stream : live()) {
    std::shared_ptr<const Marker> marker = stream->mark();
    if (!marker) return std::nullopt;
    markers.push_back(std::move(marker));
  }
  return markers;
}

void StreamRegistry::stream_ended(const detail::StreamImpl* id,
                                  std::shared_ptr<const Marker> last_work) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(streams_, [&](const Entry& entry) { return entry.id == id; });
    if (last_work) keep_work(std::move(last_work));
  }
  ended_.notify_all();
}

void StreamRegistry::add_work(std::shared_ptr<const Marker> work) {
  const std::lock_guard lock(mutex_);
  keep_work(std::move(work));
}

void StreamRegistry::keep_work(std::shared_ptr<const Marker> work) {
  // A graph brings the same marker for everything that it retains.
  if (!last_work_.empty() && last_work_.back() == work) return;
  last_work_.push_back(std::move(work));
  // A borrowed stream may go at every call, and nobody allocate for days. Twice what was left the
  // last time, so that looking at all of them costs each of them little.
  if (last_work_.size() <= std::max(pruning_size_, least_pruning_size)) return;
  std::erase_if(last_work_, [](const auto& marker) { return marker->reached(); });
  pruning_size_ = 2 * last_work_.size();
}

std::vector<std::shared_ptr<detail::StreamImpl>> StreamRegistry::live() const {
  std::vector<std::shared_ptr<detail::StreamImpl>> streams;
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : streams_)
    if (auto stream = entry.stream.lock()) streams.push_back(std::move(stream));
  return streams;
}

}  // namespace iridium
