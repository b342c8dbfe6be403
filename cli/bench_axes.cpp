#include "cli/bench_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "iridium/errors.h"

namespace iridium::cli {
namespace {

constexpr std::size_t default_factor = 4;
constexpr std::size_t most_sizes = 64;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find(separator, begin)) != std::string_view::npos;
       begin = end + 1)
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

template <class Number>
std::optional<Number> number_from(std::string_view text) {
  Number value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The largest number for a size that is larger still.
std::optional<std::size_t> size_from(std::string_view text) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  if (text.empty()) return std::nullopt;
  constexpr std::string_view units = "KMGT";
  int shift = 0;
  if (const std::size_t unit = units.find(text.back()); unit != std::string_view::npos) {
    shift = 10 * static_cast<int>(unit + 1);
    text.remove_suffix(1);
  }
  const bool has_only_digits = text.find_first_not_of("0123456789") == std::string_view::npos;
  const auto number = number_from<std::size_t>(text);
  if (!number) return !text.empty() && has_only_digits ? std::optional(most) : std::nullopt;
  if (*number == 0) return std::nullopt;
  return *number > most >> shift ? most : *number << shift;
}

[[noreturn]] void refuse(std::string_view option, std::string_view text, std::string_view reason) {
  throw Error(Errc::invalid_argument, fmt::format("{} is '{}': {}", option, text, reason));
}

std::size_t require_size(std::string_view option, std::string_view text, std::string_view part) {
  const auto size = size_from(part);
  if (!size)
    refuse(option, text, fmt::format("'{}' is not a size such as 4096, 4K, 64M or 1G", part));
  if (*size == std::numeric_limits<std::size_t>::max())
    refuse(option, text, fmt::format("'{}' is over any limit", part));
  return *size;
}

std::vector<std::size_t> range(std::string_view option, std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.size() > 3) refuse(option, text, "a range is FIRST:LAST or FIRST:LAST:xFACTOR");
  const std::size_t first = require_size(option, text, parts[0]);
  const std::size_t last = require_size(option, text, parts[1]);
  if (first > last) refuse(option, text, "the range ends before it begins");
  std::size_t factor = default_factor;
  if (parts.size() == 3) {
    const auto given =
        parts[2].starts_with('x') ? number_from<std::size_t>(parts[2].substr(1)) : std::nullopt;
    if (!given || *given < 2)
      refuse(option, text, fmt::format("'{}' is not a factor such as x2 or x4", parts[2]));
    factor = *given;
  }
  std::vector<std::size_t> sizes;
  for (std::size_t size = first; size <= last; size *= factor) {
    sizes.push_back(size);
    if (size > last / factor) break;
  }
  return sizes;
}

}  // namespace

std::vector<int> parse_numbers(std::string_view option, std::string_view text, int least,
                               int most) {
  std::vector<int> numbers;
  for (const std::string_view part : split(text, ',')) {
    const auto number = number_from<int>(part);
    if (!number || *number < least || *number > most)
      refuse(option, text, fmt::format("'{}' is not a number from {} to {}", part, least, most));
    if (std::ranges::find(numbers, *number) != numbers.end())
      refuse(option, text, fmt::format("{} stands twice", *number));
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<std::size_t> parse_sizes(std::string_view option, std::string_view text) {
  std::vector<std::size_t> sizes;
  for (const std::string_view part : split(text, ',')) {
    const bool is_range = part.find(':') != std::string_view::npos;
    const std::vector<std::size_t> some =
        is_range ? range(option, part) : std::vector{require_size(option, text, part)};
    sizes.insert(sizes.end(), some.begin(), some.end());
  }
  std::ranges::sort(sizes);
  if (std::ranges::adjacent_find(sizes) != sizes.end()) refuse(option, text, "a size stands twice");
  if (sizes.size() > most_sizes)
    refuse(option, text,
           fmt::format("{} sizes are over the limit of {}", sizes.size(), most_sizes));
  return sizes;
}

std::vector<MatmulShape> parse_shapes(std::string_view option,
                                      const std::vector<std::string>& texts) {
  std::vector<MatmulShape> shapes;
  for (const std::string& text : texts)
    for (const std::string_view part : split(text, ',')) {
      const MatmulShape shape = parse_matmul_shape(part);
      if (std::ranges::find(shapes, shape) != shapes.end())
        refuse(option, text, fmt::format("{} stands twice", name(shape)));
      shapes.push_back(shape);
    }
  return shapes;
}

std::string size_text(std::size_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  double value = static_cast<double>(bytes);
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return fmt::format("{:.4g} {}", value, units[unit]);
}

}  // namespace iridium::cli
