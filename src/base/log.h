// Lines on standard error, as many as IRIDIUM_LOG asks for.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace iridium {

enum class LogLevel { off, error, warn, info, debug };

/// The level called `text`; throws `invalid_argument` with the known names.
LogLevel parse_log_level(std::string_view text);

/// Whether lines of `level` are written.
bool log_enabled(LogLevel level);

/// Writes "iridium[rank] level: message" in one piece.
void write_log(LogLevel level, int rank, const std::string& message);

template <class... Args>
void log(LogLevel level, int rank, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) write_log(level, rank, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace iridium
