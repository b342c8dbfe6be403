#include "runtime/lane_layout.h"

#include <fmt/format.h>

#include "base/text.h"
#include "iridium/errors.h"

namespace iridium {
namespace {

constexpr std::size_t line = 128;
constexpr std::size_t state_bytes = 1024;
constexpr std::size_t max_area_bytes = std::size_t{1} << 40;
constexpr int max_blocks_limit = 1024;

std::size_t round_up(std::size_t bytes) {
  return (bytes + line - 1) / line * line;
}

void check_area(const char* option, std::size_t bytes) {
  if (bytes > max_area_bytes)
    throw Error(Errc::invalid_argument,
                fmt::format("TeamOptions::{} is {}; the limit is {}", option, format_bytes(bytes),
                            format_bytes(max_area_bytes)));
}

}  // namespace

LaneLayout lay_out_lane(int members, const TeamOptions& options) {
  if (options.max_blocks < 1 || options.max_blocks > max_blocks_limit)
    throw Error(Errc::invalid_argument,
                fmt::format("TeamOptions::max_blocks is {}; expected 1 to {}", options.max_blocks,
                            max_blocks_limit));
  check_area("scratch_bytes", options.scratch_bytes);
  check_area("packet_bytes", options.packet_bytes);
  const auto blocks = static_cast<std::size_t>(options.max_blocks);
  const auto sources = static_cast<std::size_t>(members);
  // A 16-byte packet carries 8 bytes of payload and two tags.
  const std::size_t packet_area = round_up((options.packet_bytes + 7) / 8 * 16);

  LaneLayout layout;
  layout.state = 0;
  layout.counters = layout.state + state_bytes;
  layout.flags = layout.counters + round_up(blocks * 4);
  layout.packets = layout.flags + round_up(blocks * sources * 4);
  layout.scratch = layout.packets + 2 * sources * packet_area;
  layout.bytes = layout.scratch + 2 * round_up(options.scratch_bytes);
  return layout;
}

}  // namespace iridium
