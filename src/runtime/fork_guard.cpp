#include "runtime/fork_guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace iridium {

/// All guards of the process. Held locked across a fork, so that the child finds it whole.
struct ForkGuards {
  std::mutex mutex;
  std::vector<ForkGuard*> all;

  /// Never destroyed: processes fork while they exit, too.
  static ForkGuards& instance() {
    static auto& guards = *[] {
      ::pthread_atfork(lock, unlock, disarm_child);
      return new ForkGuards;
    }();
    return guards;
  }

 private:
  static void lock() {
    instance().mutex.lock();
    for (ForkGuard* guard : instance().all)
      if (guard->mutex_ != nullptr) guard->mutex_->lock();
  }
  static void unlock() {
    for (ForkGuard* guard : instance().all)
      if (guard->mutex_ != nullptr) guard->mutex_->unlock();
    instance().mutex.unlock();
  }
  static void disarm_child() {
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (ForkGuard* guard : instance().all) {
      for (const int descriptor : guard->descriptors_) ::dup3(nothing, descriptor, O_CLOEXEC);
      guard->in_child_ = true;
    }
    ::close(nothing);
    unlock();
  }
};

ForkGuard::ForkGuard(std::vector<int> descriptors, std::mutex* mutex)
    : descriptors_(std::move(descriptors)), mutex_(mutex) {
  ForkGuards& guards = ForkGuards::instance();
  const std::lock_guard lock(guards.mutex);
  guards.all.push_back(this);
}

ForkGuard::~ForkGuard() {
  ForkGuards& guards = ForkGuards::instance();
  const std::lock_guard lock(guards.mutex);
  std::erase(guards.all, this);
}

}  // namespace iridium
