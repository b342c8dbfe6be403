#include "base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/deadline.h"

namespace iridium {

std::string list_ranks(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

std::string format_bytes(std::size_t bytes) {
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  constexpr std::array units = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{} bytes ({:.4g} {})", bytes, value, units[unit]);
}

std::string format_seconds(std::chrono::milliseconds time) {
  return fmt::format("{:g} s", static_cast<double>(time.count()) / 1000);
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

std::optional<std::size_t> parse_bytes(std::string_view text) {
  constexpr std::string_view suffixes = "KMGT";
  int shift = 0;
  if (!text.empty()) {
    const auto suffix = suffixes.find(text.back());
    if (suffix != std::string_view::npos) {
      shift = 10 * static_cast<int>(suffix + 1);
      text.remove_suffix(1);
    }
  }
  const auto value = parse_number(text);
  if (!value || *value > (std::numeric_limits<std::size_t>::max() >> shift)) return std::nullopt;
  return *value << shift;
}

std::optional<std::chrono::milliseconds> parse_seconds(std::string_view text) {
  double seconds = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seconds, std::chars_format::fixed);
  constexpr double most = std::chrono::duration<double>(max_timeout).count();
  if (text.empty() || error != std::errc{} || stop != end || !(seconds > 0) || seconds > most)
    return std::nullopt;
  return std::chrono::milliseconds(std::max(1LL, std::llround(seconds * 1000)));
}

std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char character : text) {
    hash ^= static_cast<unsigned char>(character);
    hash *= 1099511628211ull;
  }
  return hash;
}

}  // namespace iridium
