// All-to-all: every member sends every member a part of its elements.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "iridium/collective_buffers.h"

namespace iridium {

/// The same on every member.
struct AllToAllOptions {
  int blocks = 0;  ///< of the kernel, at most `Team::max_blocks`; 0: from the tuning table
};

/// Elements that one member sends or gets: where they begin in the array, and how many they are.
struct ExchangePart {
  std::size_t first = 0;
  std::size_t count = 0;
};

/// Parts of different sizes, an entry per member in both lists. What one member sends is what the
/// other one receives.
struct ExchangeParts {
  std::vector<ExchangePart> sent;
  std::vector<ExchangePart> received;  ///< these do not overlap
  /// No part of any member is larger. The same on every member, whatever its own parts: members
  /// cannot know each other's, but must agree on how often they meet.
  std::size_t max_count = 0;
};

namespace detail {
void all_to_all(StreamRef& stream, const Team& team, const CollectiveBuffers& buffers,
                const AllToAllOptions& options);
void all_to_all(StreamRef& stream, const Team& team, const CollectiveBuffers& buffers,
                const ExchangeParts& parts, const AllToAllOptions& options);
}  // namespace detail

/// out[s × count + i] = in[r × count + i] of the member at place s, where r is this rank's place:
/// part r of everybody's input. `out` is `in`, or does not overlap it.
///
/// Collective over the team. Returns at once; can be captured. Throws before anything is launched:
/// `invalid_argument`, `not_a_member`, or the reason when the team has failed.
template <Number T>
void all_to_all(StreamRef& stream, const Team& team, T* out, const T* in, std::size_t count,
                const AllToAllOptions& options = {}) {
  detail::all_to_all(stream, team, {in, out, count, data_type_of<T>(), false}, options);
}

/// The same on symmetric arrays, which may not overlap: peers write `out`.
template <Number T>
void all_to_all(StreamRef& stream, const Team& team, const SymmetricArray<T>& out,
                const SymmetricArray<T>& in, std::size_t count,
                const AllToAllOptions& options = {}) {
  detail::require_elements("all_to_all", "in", in.size(), count, team.size());
  detail::require_elements("all_to_all", "out", out.size(), count, team.size());
  detail::all_to_all(stream, team, {in.data(), out.data(), count, data_type_of<T>(), true},
                     options);
  detail::retain_captured(stream, in, out);
}

/// Parts of different sizes; `in` and `out` do not overlap. The parts are read during the call, and
/// a captured call keeps them.
template <Number T>
void all_to_all(StreamRef& stream, const Team& team, T* out, const T* in,
                const ExchangeParts& parts, const AllToAllOptions& options = {}) {
  detail::all_to_all(stream, team, {in, out, parts.max_count, data_type_of<T>(), false}, parts,
                     options);
}

}  // namespace iridium
