#include "base/log.h"

#include <unistd.h>

#include <array>
#include <cstdlib>

#include "base/settings.h"
#include "iridium/errors.h"

namespace iridium {
namespace {

constexpr std::array<std::string_view, 5> level_names = {"off", "error", "warn", "info", "debug"};

LogLevel level_from_environment() {
  const char* text = std::getenv(variables::log);
  if (text == nullptr || *text == '\0') return LogLevel::warn;
  try {
    return parse_log_level(text);
  } catch (const Error& error) {
    write_log(LogLevel::warn, -1, std::string(error.what()) + "; using warn");
    return LogLevel::warn;
  }
}

}  // namespace

LogLevel parse_log_level(std::string_view text) {
  for (std::size_t i = 0; i < level_names.size(); ++i)
    if (text == level_names[i]) return static_cast<LogLevel>(i);
  throw Error(
      Errc::invalid_argument,
      fmt::format("{} is '{}': expected off, error, warn, info or debug", variables::log, text));
}

bool log_enabled(LogLevel level) {
  static const LogLevel limit = level_from_environment();
  return level <= limit;
}

void write_log(LogLevel level, int rank, const std::string& message) {
  const std::string who = rank < 0 ? "iridium" : fmt::format("iridium[{}]", rank);
  const std::string line =
      fmt::format("{} {}: {}\n", who, level_names[static_cast<std::size_t>(level)], message);
  // A log line that cannot be written has nowhere to be reported.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace iridium
