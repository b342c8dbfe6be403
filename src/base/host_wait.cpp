#include "base/host_wait.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/log.h"
#include "base/text.h"

namespace iridium {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds usual_first_notice{10'000};
std::atomic<milliseconds> first_notice = usual_first_notice;

}  // namespace

WaitLimit call_limit(milliseconds timeout) {
  return {.timeout = timeout, .option = "ContextOptions::timeout", .variable = variables::timeout};
}

WaitLimit construction_limit(milliseconds timeout) {
  return {.timeout = timeout,
          .option = "ContextOptions::construction_timeout",
          .variable = variables::construction_timeout};
}

std::string advice(const WaitLimit& limit) {
  return fmt::format("; {} or {} changes the limit", limit.option, limit.variable);
}

HostWait::HostWait(int rank, const WaitLimit& limit)
    : rank_(rank),
      limit_(limit),
      start_(Deadline::Clock::now()),
      deadline_(limit.timeout),
      first_notice_(first_notice.load(std::memory_order_relaxed)),
      next_notice_(first_notice_) {}

Deadline::Clock::time_point HostWait::next_look() const {
  return std::min(deadline_.at(), start_ + next_notice_);
}

int HostWait::next_look_ms() const {
  const auto left =
      std::chrono::ceil<milliseconds>(start_ + next_notice_ - Deadline::Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, deadline_.left_ms()));
}

bool HostWait::notice_is_due() const {
  return Deadline::Clock::now() >= start_ + next_notice_;
}

void HostWait::tell(const std::string& whom) {
  const auto now = Deadline::Clock::now();
  const auto about = [](Deadline::Clock::duration time) {
    constexpr std::chrono::seconds second{1};
    return format_seconds(
        std::max(milliseconds(0), time < second ? std::chrono::round<milliseconds>(time)
                                                : std::chrono::round<std::chrono::seconds>(time)));
  };
  log(LogLevel::warn, rank_, "has waited {} for {}, and gives up in {} ({}, {})",
      about(now - start_), whom, about(deadline_.at() - now), limit_.option, limit_.variable);
  // A thread that slept through several has told them all.
  while (start_ + next_notice_ <= now) next_notice_ = 2 * next_notice_ + first_notice_;
}

FirstNoticeOverride::FirstNoticeOverride(milliseconds first) {
  first_notice = first;
}
FirstNoticeOverride::~FirstNoticeOverride() {
  first_notice = usual_first_notice;
}

}  // namespace iridium
