#include "runtime/retired_windows.h"

#include <algorithm>
#include <iterator>
#include <list>
#include <mutex>

namespace iridium {
namespace {

struct RetiredWindow {
  std::shared_ptr<Window> window;
  std::vector<std::shared_ptr<const Marker>> work;
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

bool all_reached(const std::vector<std::shared_ptr<const Marker>>& work) {
  return std::all_of(work.begin(), work.end(),
                     [](const auto& marker) { return marker->reached(); });
}

void retire(std::shared_ptr<Window> window, std::vector<std::shared_ptr<const Marker>> work) {
  std::list<RetiredWindow> done;  // dropped after the lock
  RetiredWindows& windows = retired_windows();
  const std::lock_guard lock(windows.mutex);
  windows.waiting.push_back({std::move(window), std::move(work)});
  for (auto entry = windows.waiting.begin(); entry != windows.waiting.end();) {
    const auto current = entry++;
    if (all_reached(current->work)) done.splice(done.end(), windows.waiting, current);
  }
}

}  // namespace iridium
