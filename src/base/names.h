// Enumerators and the names that options and messages use for them.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "iridium/errors.h"

namespace iridium {

/// The names of enumerators that count from 0.
template <class Enum, std::size_t Count>
struct Names {
  const char* what;  ///< "reduction": what messages call a value
  std::array<std::string_view, Count> names;

  constexpr std::string_view name(Enum value) const {
    const auto index = static_cast<std::size_t>(value);
    return index < Count ? names[index] : "unknown";
  }
  Enum parse(std::string_view text) const {
    for (std::size_t i = 0; i < Count; ++i)
      if (text == names[i]) return static_cast<Enum>(i);
    throw Error(Errc::invalid_argument,
                fmt::format("unknown {} '{}': expected {}", what, text, fmt::join(names, ", ")));
  }
  constexpr std::array<Enum, Count> values() const {
    std::array<Enum, Count> all = {};
    for (std::size_t i = 0; i < Count; ++i) all[i] = static_cast<Enum>(i);
    return all;
  }
};

}  // namespace iridium
