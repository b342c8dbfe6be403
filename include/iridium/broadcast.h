// Broadcast: every member gets one member's elements.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include "iridium/collective_buffers.h"

namespace iridium {

/// How it is done; docs/algorithms.md has the steps of each.
enum class BroadcastAlgorithm {
  automatic,  ///< from the tuning table, by bytes, members and device
  packet,     ///< the root sends packets
  pull,       ///< everybody reads from the root
};

/// All of them, in this order.
std::span<const BroadcastAlgorithm> broadcast_algorithms();
std::string_view name(BroadcastAlgorithm algorithm);
/// The algorithm called `text`; throws `invalid_argument` with the known names.
BroadcastAlgorithm parse_broadcast_algorithm(std::string_view text);

/// The same on every member.
struct BroadcastOptions {
  BroadcastAlgorithm algorithm = BroadcastAlgorithm::automatic;
  int blocks = 0;  ///< of the kernel, at most `Team::max_blocks`; 0: from the tuning table
};

namespace detail {
void broadcast(StreamRef& stream, const Team& team, const CollectiveBuffers& buffers, int root,
               const BroadcastOptions& options);
}

/// out[i] = in[i] of the member at place `root`, for i below `count`, on every member. Elsewhere
/// `in` is not read and may be null. `out` is `in`, or does not overlap it.
///
/// Collective over the team. Returns at once; can be captured. Throws before anything is launched:
/// `invalid_argument`, `not_a_member`, or the reason when the team has failed.
template <Number T>
void broadcast(StreamRef& stream, const Team& team, T* out, const std::type_identity_t<T>* in,
               std::size_t count, int root, const BroadcastOptions& options = {}) {
  detail::broadcast(stream, team, {in, out, count, data_type_of<T>(), false}, root, options);
}

/// The same on symmetric arrays, which may not overlap unless they are the same: peers read `in`.
template <Number T>
void broadcast(StreamRef& stream, const Team& team, const SymmetricArray<T>& out,
               const SymmetricArray<T>& in, std::size_t count, int root,
               const BroadcastOptions& options = {}) {
  detail::require_elements("broadcast", "in", in.size(), count);
  detail::require_elements("broadcast", "out", out.size(), count);
  detail::broadcast(stream, team, {in.data(), out.data(), count, data_type_of<T>(), true}, root,
                    options);
  detail::retain_captured(stream, in, out);
}

}  // namespace iridium
