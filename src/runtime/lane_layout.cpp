#include "runtime/lane_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "iridium/errors.h"

namespace iridium {
namespace {

constexpr std::size_t line = 128;
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

bool is_evenly_spaced(std::span<const int> ranks) {
  for (std::size_t i = 2; i < ranks.size(); ++i)
    if (ranks[i] - ranks[i - 1] != ranks[1] - ranks[0]) return false;
  return true;
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
  const std::size_t packet_area =
      round_up(((options.packet_bytes + sources - 1) / sources + 7) / 8 * 16);

  LaneLayout layout;
  layout.members = members;
  layout.max_blocks = options.max_blocks;
  layout.packet_slots = packet_area / 16;
  layout.scratch_bytes = round_up(options.scratch_bytes);
  static_assert(sizeof(LaneState) % line == 0 && sizeof(LaneBlock) % line == 0);
  layout.packets = sizeof(LaneState) + blocks * sizeof(LaneBlock);
  static_assert(sizeof(LanePieces) % line == 0);
  layout.scratch = layout.packets + 2 * sources * packet_area + sizeof(LanePieces);
  layout.bytes = layout.scratch + 2 * layout.scratch_bytes;
  return layout;
}

Lane make_lane(const LaneLayout& layout, const LanePlace& where, std::string_view operation) {
  const auto stride = static_cast<std::ptrdiff_t>(where.stride);
  Peers::Terms peers;
  peers.place = where.place;
  peers.size = static_cast<int>(where.ranks.size());
  peers.rank = where.ranks[static_cast<std::size_t>(where.place)];
  peers.on_one_device = where.link == Link::shared && where.placement == Placement::device;
  peers.native_atomics = has_native_atomics(where.link);
  peers.segment_stride = stride;
  if (is_evenly_spaced(where.ranks))
    peers.place_stride = where.ranks.size() < 2 ? 0 : (where.ranks[1] - where.ranks[0]) * stride;
  else
    peers.ranks = reinterpret_cast<const LaneState*>(where.base)->ranks;

  Lane::Terms terms;
  terms.peers = Peers(peers);
  terms.layout = layout;
  terms.base = where.base;
  terms.status = where.status;
  terms.timeout_ns = where.timeout_ns;
  terms.segment = where.segment.data();
  terms.segment_bytes = where.segment.size();
  operation = operation.substr(0, max_operation_length);
  std::copy(operation.begin(), operation.end(), terms.operation.text);
  // Sums of several ids must not look like a multiple of one.
  terms.call_id = where.call_id * 0x85ebca6bu;
  return Lane(terms);
}

}  // namespace iridium
