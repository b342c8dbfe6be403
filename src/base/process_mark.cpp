#include "base/process_mark.h"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace iridium {
namespace {

/// Forks between the process that loaded the library and this one.
std::atomic<std::uint64_t> forks = 0;

std::uint64_t count_forks() {
  [[maybe_unused]] static const int registered =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  return forks.load(std::memory_order_relaxed);
}

}  // namespace

ProcessMark::ProcessMark() : forks_(count_forks()) {}

bool ProcessMark::is_here() const {
  return forks_ == forks.load(std::memory_order_relaxed);
}

Error forked_child_error() {
  return {Errc::unsupported,
          "this process was forked by the one that made the context: contexts, teams, streams and "
          "arrays work only there; start processes that use Iridium with exec"};
}

void keep_parents(std::shared_ptr<const void> object) {
  static auto& mutex = *new std::mutex;
  static auto& kept = *new std::vector<std::shared_ptr<const void>>;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(object));
}

}  // namespace iridium
