// One rank's view of the symmetric heap: which arrays live, which are freed here, and which are
// free everywhere.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "iridium/symmetric_array.h"
#include "runtime/offset_allocator.h"
#include "runtime/payload.h"
#include "runtime/stream_registry.h"

namespace iridium {

/// All ranks make the same sequence of `apply` and `allocate` calls with the same arguments, so
/// their offsets agree. Frees happen whenever they happen; a *report* tells the other ranks of
/// those whose work is done. Thread safety: all of it. Lives as long as any of its arrays.
class Heap final : public std::enable_shared_from_this<Heap> {
 public:
  /// Unmaps the window, now or when the work on it is done.
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  Heap(std::shared_ptr<Window> window, int rank, int size, std::size_t bytes,
       std::shared_ptr<StreamRegistry> streams);

  const ProcessMark& process() const { return process_; }

  /// What the other ranks must know: the arrays freed here whose work is done, and whether more are
  /// to come. `gave_up`: their work did not end in time. Sent again until `apply` has seen it.
  Bytes report(bool gave_up = false);
  /// Takes in every rank's report; what all have freed is free. True when a rank has more to come.
  bool apply(const std::vector<std::span<const std::byte>>& reports);
  /// None when there is no room.
  std::shared_ptr<detail::Allocation> allocate(std::size_t bytes, std::size_t alignment);
  /// Whether the work on everything freed here is done.
  bool frees_are_done();
  /// The ranks whose reports say that they gave up.
  static std::vector<int> gave_up(const std::vector<std::span<const std::byte>>& reports);

  /// Whether the range lies in one live array of this rank.
  bool contains(const void* pointer, std::size_t bytes) const;
  /// The same place in `rank`'s segment; throws `invalid_argument` off this rank's segment.
  std::byte* translate(const void* pointer, int rank) const;
  /// Keeps `memory` as long as kernels may touch the heap.
  void keep(std::shared_ptr<void> memory) { window_->keep(std::move(memory)); }
  std::byte* segment() const { return window_->segment(rank_); }
  std::size_t stride() const { return window_->stride(); }

  /// "requested …; free …, largest block …, heap …".
  std::string describe_room(std::size_t requested) const;

 private:
  class Block;
  struct Record {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    std::uint64_t freed_by = 0;  ///< a bit per rank
  };
  struct PendingFrees {
    std::vector<std::uint64_t> ids;
    Markers work;  ///< submitted before the arrays were freed
  };

  /// Marks the streams for arrays that were freed where that could not be done. Marking late only
  /// waits for more.
  void mark_frees();
  /// The streams' marks, where they can be had now.
  std::optional<Markers> try_mark() noexcept;
  void free(std::uint64_t id, std::size_t offset);

  const ProcessMark process_;
  std::shared_ptr<Window> window_;
  const int rank_;
  const int size_;
  const std::shared_ptr<StreamRegistry> streams_;

  mutable std::mutex mutex_;
  OffsetAllocator allocator_;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, Record> records_;  ///< by id: not yet freed by every rank
  std::map<std::size_t, std::size_t> live_;  ///< offset → bytes of arrays not freed here
  std::vector<std::uint64_t> freed_;         ///< freed here, streams not marked yet
  std::vector<PendingFrees> pending_;        ///< freed here, work not done yet
  std::vector<std::uint64_t> reportable_;    ///< freed here, work done, not yet taken in by all
};

}  // namespace iridium
