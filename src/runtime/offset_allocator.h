// Which bytes of a segment are taken. Pure and deterministic: the same calls give the same offsets
// on every rank.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace iridium {

/// Best fit, lowest offset among equals; neighbouring free blocks are always one block.
/// Thread safety: none; the heap has a lock around it.
class OffsetAllocator {
 public:
  /// Offsets and sizes are multiples of this.
  static constexpr std::size_t granule = 256;

  explicit OffsetAllocator(std::size_t bytes);

  /// An offset that is a multiple of `alignment` (a power of two), or none when no free block has
  /// room. Zero bytes take one granule, so that every array has an address of its own.
  std::optional<std::size_t> allocate(std::size_t bytes, std::size_t alignment);
  /// Gives back what `allocate` returned.
  void release(std::size_t offset);

  std::size_t total_bytes() const { return total_; }
  std::size_t free_bytes() const { return free_bytes_; }
  std::size_t largest_free_block() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

 private:
  void add_free(std::size_t offset, std::size_t bytes);
  void remove_free(std::map<std::size_t, std::size_t>::iterator block);

  std::size_t total_;
  std::size_t free_bytes_ = 0;
  std::map<std::size_t, std::size_t> free_;                ///< offset → bytes
  std::set<std::pair<std::size_t, std::size_t>> by_size_;  ///< (bytes, offset) of the same blocks
  std::map<std::size_t, std::size_t> used_;                ///< offset → bytes
};

}  // namespace iridium
