// Memory that the fibers of one block share, and their copies to it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <vector>

#include "backend/host/turn_number.h"

namespace iridium {

/// The memory of one block at a time. All bits are set when a block begins, so that numbers nobody
/// wrote are NaN, or -1.
class HostBlockMemory {
 public:
  HostBlockMemory() = default;
  ~HostBlockMemory();
  HostBlockMemory(const HostBlockMemory&) = delete;
  HostBlockMemory& operator=(const HostBlockMemory&) = delete;

  /// By the scheduler, before the first fiber of a block runs.
  void renew();
  /// By fibers: the place that belongs to `key`, the same for all of them. Throws when the block's
  /// memory is used up.
  std::byte* find(const void* key, std::size_t bytes);
  /// By fibers: whether a block's memory has all these bytes.
  bool contains(const std::byte* first, std::size_t bytes) const;

 private:
  struct Storage;
  struct Place {
    TurnNumber key;
    TurnNumber offset;
  };

  Storage& storage();

  std::array<Place, 64> places_;
  TurnNumber count_;  ///< of the places
  TurnNumber used_;   ///< bytes
  /// Made when the first block asks for memory, by one of its fibers.
  std::atomic<Storage*> storage_ = nullptr;
};

/// The copies to block memory that one fiber has begun and that have not arrived.
class VectorFetches {
 public:
  /// Throws unless both addresses are multiples of 16.
  void begin(std::byte* to, const void* from);
  void end_group() { ++group_; }
  /// All but the last `open` groups that have ended arrive.
  void await(std::size_t open);
  /// This one arrives.
  void land(std::size_t which);
  std::size_t count() const { return waiting_.size(); }
  void forget();

 private:
  struct Fetch {
    std::byte* to;
    const void* from;
    std::size_t group;
  };

  std::vector<Fetch> waiting_;  ///< in order
  std::size_t group_ = 0;       ///< that has not ended
};

}  // namespace iridium
