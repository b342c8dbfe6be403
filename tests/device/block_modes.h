// Ways in which the host backend runs blocks, for tests of what is block-collective.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace iridium::test {

/// See `ContextOptions`.
struct BlockMode {
  bool split;
  std::optional<std::uint64_t> seed;
};
inline constexpr BlockMode block_modes[] = {{true, std::nullopt}, {false, 1}, {true, 2}, {true, 3}};

/// For the names of contexts.
inline std::string name(const BlockMode& mode) {
  return std::to_string(mode.seed.value_or(0)) + (mode.split ? "split" : "whole");
}

}  // namespace iridium::test
