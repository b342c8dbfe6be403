#include "runtime/retired_windows.h"

#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include "base/log.h"

namespace iridium {
namespace {

struct RetiredWindow {
  std::shared_ptr<Window> window;
  std::shared_ptr<StreamRegistry> streams;
  std::optional<Markers> work = {};  ///< none until the streams could be marked

  bool is_done() noexcept {
    try {
      if (!work) work = streams->mark_all();
      return work && all_reached(*work);
    } catch (const std::exception& error) {
      // Whoever sweeps may be of another backend, or have another GPU: it is not their failure.
      log(LogLevel::debug, -1, "a window stays mapped: {}", error.what());
      return false;
    }
  }
};

struct RetiredWindows {
  std::mutex mutex;
  std::list<RetiredWindow> waiting;
};

/// Never destroyed: heaps may go while the process exits.
RetiredWindows& retired_windows() {
  static auto& windows = *new RetiredWindows;
  return windows;
}

}  // namespace

void sweep_retired_windows() {
  std::list<RetiredWindow> done;  // dropped after the lock
  RetiredWindows& windows = retired_windows();
  const std::lock_guard lock(windows.mutex);
  for (auto entry = windows.waiting.begin(); entry != windows.waiting.end();) {
    const auto current = entry++;
    if (current->is_done()) done.splice(done.end(), windows.waiting, current);
  }
}

void retire(std::shared_ptr<Window> window, std::shared_ptr<StreamRegistry> streams) {
  const bool allowed = window->calls_are_allowed_here();
  {
    RetiredWindows& windows = retired_windows();
    const std::lock_guard lock(windows.mutex);
    windows.waiting.push_back({std::move(window), std::move(streams)});
  }
  if (allowed) sweep_retired_windows();
}

}  // namespace iridium
