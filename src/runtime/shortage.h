// Calls that find no descriptor left, for the moment.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "base/deadline.h"
#include "base/log.h"
#include "base/system_error.h"

namespace iridium {

/// How long a rank waits for descriptors that others of its threads, or other processes, hold.
inline constexpr std::chrono::milliseconds shortage_patience{5000};

/// What `body` returns. While it throws `Shortage` it is called again, for `shortage_patience` and
/// not beyond `deadline`.
template <class Body>
auto outlast_shortage(int rank, const Deadline& deadline, Body body) {
  std::optional<Deadline> end;
  while (true) {
    try {
      return body();
    } catch (const Shortage&) {
      if (!end) {
        end.emplace(std::min(shortage_patience, std::chrono::milliseconds(deadline.left_ms())));
        log(LogLevel::warn, rank, "no descriptors are left at the rendezvous; tries again");
      }
      if (end->expired()) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace iridium
