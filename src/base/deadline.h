// The moment a bounded wait gives up.
#pragma once

#include <algorithm>
#include <chrono>

namespace iridium {

/// The longest timeout that can be asked for.
inline constexpr std::chrono::milliseconds max_timeout = std::chrono::days(366);

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  /// `timeout` from now.
  explicit Deadline(std::chrono::milliseconds timeout)
      : timeout_(timeout), at_(Clock::now() + timeout) {}

  Clock::time_point at() const { return at_; }
  /// The wait's whole length, for messages.
  std::chrono::milliseconds timeout() const { return timeout_; }
  bool expired() const { return Clock::now() >= at_; }
  /// Whole milliseconds left, rounded up, at least 0: what poll() takes.
  int left_ms() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 1'000'000'000));
  }

 private:
  std::chrono::milliseconds timeout_;
  Clock::time_point at_;
};

}  // namespace iridium
