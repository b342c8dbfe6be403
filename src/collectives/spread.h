// One load, many stores.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iridium/device/copy.h"

namespace iridium {

/// Copies `bytes` bytes from `from` to `targets` places, target(i), reading them once.
/// Block-collective; threads hold `Vectors` 16-byte vectors at a time.
template <int Vectors, int Threads, class Target>
IR_DEVICE void spread(BlockOf<Threads> block, int targets, Target target, const std::uint8_t* from,
                      std::size_t bytes) {
  // On a CPU, little enough for the nearest cache.
  constexpr int tile = Vectors * (target::has_whole_blocks ? 256 : Threads) * 16;
  bool vectors = target::allows_vectors(block.seat(), from);
  IR_ROLLED for (int i = 0; i < targets; ++i) {
    vectors = vectors && target::allows_vectors(block.seat(), target(i));
  }
  std::size_t at = 0;
  IR_ROLLED for (; vectors && bytes - at >= tile; at += tile) {
    Tile<std::uint8_t, tile, Threads> held;
    target::point(block.seat());
    target::begin_tile<tile>(block.seat(), detail::elements_of(held));
    target::load_tile<tile, 16, Threads, Cache::normal>(block.seat(), detail::elements_of(held),
                                                        from + at);
    IR_ROLLED for (int i = 0; i < targets; ++i) {
      target::store_tile<tile, 16, Threads, Cache::normal>(block.seat(), target(i) + at,
                                                           detail::elements_of(held));
    }
  }
  IR_ROLLED for (int i = 0; i < targets; ++i) copy(block, target(i) + at, from + at, bytes - at);
}

}  // namespace iridium
