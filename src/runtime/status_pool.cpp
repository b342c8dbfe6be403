#include "runtime/status_pool.h"

#include <new>
#include <utility>

namespace iridium {
namespace {

/// Each word has cache lines of its own.
struct alignas(128) Slot {
  LaneStatus status;
};
constexpr std::size_t slots_per_chunk = 64;

}  // namespace

StatusPool::StatusPool(Backend& backend, std::shared_ptr<Heap> heap,
                       std::shared_ptr<StreamRegistry> streams)
    : backend_(backend), heap_(std::move(heap)), streams_(std::move(streams)) {}

std::shared_ptr<LaneStatus> StatusPool::take() {
  collect();
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    const auto chunk = backend_.allocate_host_visible(slots_per_chunk * sizeof(Slot));
    heap_->keep(chunk);
    auto* slots = static_cast<Slot*>(chunk.get());
    for (std::size_t i = slots_per_chunk; i > 0; --i) free_.push_back(&slots[i - 1].status);
  }
  LaneStatus* const word = new (free_.back()) LaneStatus;
  free_.pop_back();
  return {word, [pool = shared_from_this()](LaneStatus* back) { pool->give_back(back); }};
}

void StatusPool::collect() {
  std::vector<LaneStatus*> returned;
  {
    const std::lock_guard lock(mutex_);
    returned = std::exchange(returned_, {});
  }
  // None while a stream is capturing: then they wait for the next call.
  auto work = returned.empty() ? std::nullopt : streams_->mark_all();
  const std::lock_guard lock(mutex_);
  if (work)
    pending_.push_back({std::move(returned), std::move(*work)});
  else
    returned_.insert(returned_.end(), returned.begin(), returned.end());
  std::erase_if(pending_, [this](const Pending& pending) {
    if (!all_reached(pending.work)) return false;
    free_.insert(free_.end(), pending.words.begin(), pending.words.end());
    return true;
  });
}

void StatusPool::give_back(LaneStatus* word) {
  // A thread of the parent's may have held the lock.
  if (!heap_->process().is_here()) return;
  const std::lock_guard lock(mutex_);
  returned_.push_back(word);
}

}  // namespace iridium
