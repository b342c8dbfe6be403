#include "backend/host/host_capture.h"

#include <algorithm>
#include <utility>

namespace iridium {

bool HostCapture::is_over() const {
  const std::lock_guard lock(mutex_);
  return graph_ == nullptr;
}

void HostCapture::note_last(const void* stream) {
  last_[stream] = pasts_[stream][stream] = graph_->operations.size();
}

bool HostCapture::add(const void* stream, Operation& operation) {
  const std::lock_guard lock(mutex_);
  if (!graph_) return false;
  graph_->operations.push_back(std::move(operation));
  note_last(stream);
  return true;
}

bool HostCapture::add(const void* stream, const HostGraph& graph) {
  const std::lock_guard lock(mutex_);
  if (!graph_) return false;
  graph_->operations.insert(graph_->operations.end(), graph.operations.begin(),
                            graph.operations.end());
  // Recorded operations refer to memory the inner graph keeps alive.
  graph_->retained.insert(graph_->retained.end(), graph.retained.begin(), graph.retained.end());
  if (!graph.operations.empty()) note_last(stream);
  return true;
}

bool HostCapture::retain(std::shared_ptr<const detail::Resource> resource) {
  const std::lock_guard lock(mutex_);
  if (!graph_) return false;
  graph_->retained.push_back(std::move(resource));
  return true;
}

HostCapture::Past HostCapture::past_of(const void* stream) const {
  const std::lock_guard lock(mutex_);
  const auto found = pasts_.find(stream);
  return found == pasts_.end() ? Past() : found->second;
}

bool HostCapture::join(const void* stream, const Past& past) {
  const std::lock_guard lock(mutex_);
  if (!graph_) return false;
  Past& mine = pasts_[stream];
  for (const auto& [other, last] : past) mine[other] = std::max(mine[other], last);
  return true;
}

bool HostCapture::is_behind_all(const void* stream) const {
  const Past past = past_of(stream);
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(last_, [&](const auto& operation) {
    const auto known = past.find(operation.first);
    return known != past.end() && known->second >= operation.second;
  });
}

std::shared_ptr<const HostGraph> HostCapture::end() {
  const std::lock_guard lock(mutex_);
  return std::exchange(graph_, nullptr);
}

}  // namespace iridium
