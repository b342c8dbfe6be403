// A wait of the host for other ranks: a setting bounds it, and while it lasts it says for whom.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/settings.h"

namespace iridium {

/// How long a wait may take, and which setting says so.
struct WaitLimit {
  std::chrono::milliseconds timeout{};
  std::string_view option;
  std::string_view variable;
};

/// Of ordinary waits: what `ContextOptions::timeout` came to, or a multiple of it.
WaitLimit call_limit(std::chrono::milliseconds timeout);
/// Of waits while a context or a team is made.
WaitLimit construction_limit(std::chrono::milliseconds timeout);

/// What messages of timeouts end with: "; ContextOptions::timeout or IRIDIUM_TIMEOUT changes the
/// limit".
std::string advice(const WaitLimit& limit);

/// One wait, from now on. Whoever waits looks up at `next_look()` at the latest, and calls `tell`
/// where `notice_is_due()`: the first notice is due after 10 s, and the intervals double.
class HostWait {
 public:
  HostWait(int rank, const WaitLimit& limit);

  const WaitLimit& limit() const { return limit_; }
  const Deadline& deadline() const { return deadline_; }
  /// The next notice or the deadline.
  Deadline::Clock::time_point next_look() const;
  /// The same as whole milliseconds from now, rounded up: what poll() takes.
  int next_look_ms() const;

  bool notice_is_due() const;
  /// Logs "has waited 10 s for {whom}, and gives up in 290 s …" at level `warn`. Writes, so without
  /// locks.
  void tell(const std::string& whom);

 private:
  const int rank_;
  const WaitLimit limit_;
  const Deadline::Clock::time_point start_;
  const Deadline deadline_;
  const std::chrono::milliseconds first_notice_;
  std::chrono::milliseconds next_notice_;  ///< after the start
};

/// While it lives, waits that begin give their first notice after `first`. For tests; one at a
/// time.
class FirstNoticeOverride {
 public:
  explicit FirstNoticeOverride(std::chrono::milliseconds first);
  ~FirstNoticeOverride();
  FirstNoticeOverride(const FirstNoticeOverride&) = delete;
  FirstNoticeOverride& operator=(const FirstNoticeOverride&) = delete;
};

}  // namespace iridium
