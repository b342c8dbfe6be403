#include "runtime/offset_allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "iridium/errors.h"

namespace iridium {

OffsetAllocator::OffsetAllocator(std::size_t bytes) : total_(bytes / granule * granule) {
  if (total_ > 0) add_free(0, total_);
}

std::optional<std::size_t> OffsetAllocator::allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes > total_) return std::nullopt;
  const std::size_t needed = std::max<std::size_t>(1, (bytes + granule - 1) / granule) * granule;
  const std::size_t aligned_to = std::max(alignment, granule);
  for (auto candidate = by_size_.lower_bound({needed, 0}); candidate != by_size_.end();
       ++candidate) {
    const auto [block_bytes, block] = *candidate;
    const std::size_t offset = (block + aligned_to - 1) / aligned_to * aligned_to;
    const std::size_t skipped = offset - block;
    if (skipped > block_bytes || block_bytes - skipped < needed) continue;
    remove_free(free_.find(block));
    if (skipped > 0) add_free(block, skipped);
    if (const std::size_t left = block_bytes - skipped - needed; left > 0)
      add_free(offset + needed, left);
    used_[offset] = needed;
    return offset;
  }
  return std::nullopt;
}

void OffsetAllocator::release(std::size_t offset) {
  const auto used = used_.find(offset);
  if (used == used_.end())
    throw Error(Errc::invalid_argument, fmt::format("offset {} is not allocated", offset));
  std::size_t start = offset;
  std::size_t bytes = used->second;
  used_.erase(used);
  const auto after = free_.lower_bound(start);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == start) {
      start = before->first;
      bytes += before->second;
      remove_free(before);
    }
  }
  if (after != free_.end() && start + bytes == after->first) {
    bytes += after->second;
    remove_free(after);
  }
  add_free(start, bytes);
}

void OffsetAllocator::add_free(std::size_t offset, std::size_t bytes) {
  free_[offset] = bytes;
  by_size_.emplace(bytes, offset);
  free_bytes_ += bytes;
}

void OffsetAllocator::remove_free(std::map<std::size_t, std::size_t>::iterator block) {
  free_bytes_ -= block->second;
  by_size_.erase({block->second, block->first});
  free_.erase(block);
}

}  // namespace iridium
