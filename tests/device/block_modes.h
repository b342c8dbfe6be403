// Ways in which the host backend runs blocks, for tests of what is block-collective.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "iridium/context.h"

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

/// Runs `body` on a context of every mode: a GPU has only one.
template <class Body>
void in_every_mode(Body body) {
  constexpr std::size_t heap_bytes = std::size_t{32} << 20;
  std::vector<BlockMode> modes = {{false, std::nullopt}};
  modes.insert(modes.end(), std::begin(block_modes), std::end(block_modes));
  for (const BlockMode& mode : modes) {
    SCOPED_TRACE(name(mode));
    Context context({.heap_bytes = heap_bytes,
                     .split_blocks = mode.split,
                     .schedule_seed = mode.seed,
                     .name = "blocks" + name(mode)});
    body(context);
    if (context.backend() != BackendKind::host) break;
  }
}

}  // namespace iridium::test
