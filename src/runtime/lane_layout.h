// Where the parts of a team's lane lie. Pure: every member computes the same.
#pragma once

#include <span>
#include <string_view>

#include "iridium/device/lane.h"
#include "iridium/team.h"

namespace iridium {

/// Each part starts on a cache line of its own. Throws `invalid_argument` for sizes out of range.
LaneLayout lay_out_lane(int members, const TeamOptions& options);

/// Where a member finds its lane and its peers.
struct LanePlace {
  std::span<const int> ranks;  ///< of the team, in order
  int place = 0;               ///< of this member in the list
  std::byte* base = nullptr;   ///< of its lane
  std::size_t stride = 0;      ///< between the segments of neighbouring ranks
  LaneStatus* status = nullptr;
  std::uint64_t timeout_ns = 0;
  Link link = Link::shared;  ///< the worst one between two members
  Placement placement = Placement::host;
  std::uint32_t call_id = 0;  ///< another one for every call
  /// In checked mode: all of this member's segment.
  std::span<const std::byte> segment = {};
};

/// The lane as kernels of the member at `place` hold it. `operation` is what faults call the work,
/// cut to `max_operation_length`. Unless the ranks are evenly spaced, they stand in the lane's
/// state.
Lane make_lane(const LaneLayout& layout, const LanePlace& where, std::string_view operation);

}  // namespace iridium
