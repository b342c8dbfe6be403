#include "iridium/errors.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/system_error.h"

namespace iridium {

std::string_view name(Errc code) {
  switch (code) {
    case Errc::invalid_argument:
      return "invalid_argument";
    case Errc::mismatch:
      return "mismatch";
    case Errc::out_of_memory:
      return "out_of_memory";
    case Errc::timeout:
      return "timeout";
    case Errc::peer_lost:
      return "peer_lost";
    case Errc::peer_left:
      return "peer_left";
    case Errc::capture_unsupported:
      return "capture_unsupported";
    case Errc::not_a_member:
      return "not_a_member";
    case Errc::permission:
      return "permission";
    case Errc::protocol:
      return "protocol";
    case Errc::unsupported:
      return "unsupported";
    case Errc::lane_busy:
      return "lane_busy";
    case Errc::stream_failed:
      return "stream_failed";
    case Errc::system:
      return "system";
  }
  return "unknown";
}

Error::Error(Errc code, const std::string& message, std::vector<int> ranks)
    : std::runtime_error(std::string(name(code)) + ": " + message),
      code_(code),
      ranks_(std::move(ranks)) {}

std::string system_reason(int code) {
  std::string reason = std::strerror(code);
  ::rlimit limit = {};
  if (code == EMFILE && ::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    reason +=
        fmt::format(" (this process may have {} open: ulimit -n raises that)", limit.rlim_cur);
  if (code == ENFILE) reason += " (on the whole machine: sysctl fs.file-max raises that)";
  return reason;
}

Error system_error(const std::string& what) {
  const int code = errno;
  return {Errc::system, what + ": " + system_reason(code)};
}

void throw_system_error(const std::string& what) {
  const int code = errno;
  if (code != EMFILE && code != ENFILE && code != ENOBUFS && code != ENOMEM)
    throw system_error(what);
  throw Shortage(Errc::system, what + ": " + system_reason(code));
}

}  // namespace iridium
