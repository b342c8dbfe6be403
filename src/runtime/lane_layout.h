// Where the parts of a team's lane lie. Pure: every member computes the same.
#pragma once

#include <cstddef>

#include "iridium/team.h"

namespace iridium {

/// Byte offsets from the lane's start; each part starts on a cache line of its own.
struct LaneLayout {
  std::size_t state = 0;     ///< step and leave words, abort word, fault record
  std::size_t counters = 0;  ///< barrier counters: one per block
  std::size_t flags = 0;     ///< barrier flags: [block][source]
  std::size_t packets = 0;   ///< [parity][source][slot], 16 bytes each; never holds anything else
  std::size_t scratch = 0;   ///< [parity][scratch_bytes]; the only part that need not start as zero
  std::size_t bytes = 0;     ///< of the whole lane

  bool operator==(const LaneLayout&) const = default;
};

/// Throws `invalid_argument` for sizes out of range.
LaneLayout lay_out_lane(int members, const TeamOptions& options);

}  // namespace iridium
