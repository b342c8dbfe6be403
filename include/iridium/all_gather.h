// All-gather: every member gets all members' elements.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "iridium/collective_buffers.h"

namespace iridium {

/// How it is done; docs/algorithms.md has the steps of each.
enum class AllGatherAlgorithm {
  automatic,  ///< from the tuning table, by bytes, members and device
  push,       ///< everybody writes its elements to everybody: one load, a store per member
  pull,       ///< everybody reads everybody's elements
  packet,     ///< everybody sends its elements to everybody, in packets: no barrier
};

/// All of them, in this order.
std::span<const AllGatherAlgorithm> all_gather_algorithms();
std::string_view name(AllGatherAlgorithm algorithm);
/// The algorithm called `text`; throws `invalid_argument` with the known names.
AllGatherAlgorithm parse_all_gather_algorithm(std::string_view text);

/// The same on every member.
struct AllGatherOptions {
  AllGatherAlgorithm algorithm = AllGatherAlgorithm::automatic;
  int blocks = 0;  ///< of the kernel, at most `Team::max_blocks`; 0: from the tuning table
  int tile = 0;    ///< of `push`, 16-byte vectors a thread has: 1, 2 or 4; 0: from the table
};

namespace detail {
void all_gather(StreamRef& stream, const Team& team, const CollectiveBuffers& buffers,
                const AllGatherOptions& options);
}

/// out[s × count + i] = in[i] of the member at place s, for i below `count` and every s. `in` does
/// not overlap `out`, or is `out`, or is this rank's part of it.
///
/// Collective over the team. Returns at once; can be captured. Throws before anything is launched:
/// `invalid_argument`, `not_a_member`, or the reason when the team has failed.
template <Number T>
void all_gather(StreamRef& stream, const Team& team, T* out, const T* in, std::size_t count,
                const AllGatherOptions& options = {}) {
  detail::all_gather(stream, team, {in, out, count, data_type_of<T>(), false}, options);
}

/// The same on symmetric arrays, which may not overlap: peers read `in` or write `out`.
template <Number T>
void all_gather(StreamRef& stream, const Team& team, const SymmetricArray<T>& out,
                const SymmetricArray<T>& in, std::size_t count,
                const AllGatherOptions& options = {}) {
  detail::require_elements("all_gather", "in", in.size(), count);
  detail::require_elements("all_gather", "out", out.size(), count, team.size());
  detail::all_gather(stream, team, {in.data(), out.data(), count, data_type_of<T>(), true},
                     options);
  detail::retain_captured(stream, in, out);
}

}  // namespace iridium
