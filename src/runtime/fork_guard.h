// Children forked without exec.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

namespace iridium {

/// Takes `descriptors` away from every child that this process forks while it lives: they become
/// /dev/null there. A child that kept its parent's control links would hide the parent's death from
/// the other ranks, and could say goodbye in its name.
class ForkGuard {
 public:
  /// `mutex`, where given, is held across forks: else a child in which the thread that held it does
  /// not exist would wait for it for ever.
  explicit ForkGuard(std::vector<int> descriptors, std::mutex* mutex = nullptr);
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  /// Whether this is such a child: the parent's threads do not exist here.
  bool in_child() const { return in_child_; }

 private:
  friend struct ForkGuards;
  std::vector<int> descriptors_;
  std::mutex* mutex_;
  std::atomic<bool> in_child_ = false;
};

}  // namespace iridium
