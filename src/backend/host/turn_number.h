#pragma once

#include <atomic>
#include <cstdint>

namespace iridium {

/// A number that fibers of one thread share with each other and with their scheduler. Taking turns
/// orders them, which ThreadSanitizer must not be told: it would take the blocks' own accesses for
/// ordered as well.
class TurnNumber {
 public:
  explicit TurnNumber(std::uint64_t value = 0) : value_(value) {}
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }
  void set(std::uint64_t value) { value_.store(value, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_;
};

}  // namespace iridium
