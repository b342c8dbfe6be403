// Children forked without exec.
#pragma once

#include <atomic>
#include <vector>

namespace iridium {

/// Takes `descriptors` away from every child that this process forks while it lives: they become
/// /dev/null there. A child that kept its parent's control links would hide the parent's death from
/// the other ranks, and could say goodbye in its name.
class ForkGuard {
 public:
  explicit ForkGuard(std::vector<int> descriptors);
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  /// Whether this is such a child: the parent's threads do not exist here.
  bool in_child() const { return in_child_; }

 private:
  friend struct ForkGuards;
  std::vector<int> descriptors_;
  std::atomic<bool> in_child_ = false;
};

}  // namespace iridium
