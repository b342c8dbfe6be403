// Reduce-scatter: every member gets its shard of the reduction of all members' elements.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "iridium/collective_buffers.h"

namespace iridium {

/// How it is done; docs/algorithms.md has the steps of each.
enum class ReduceScatterAlgorithm {
  automatic,  ///< from the tuning table, by bytes, members and device
  pull,       ///< everybody reads its shard from everybody: one barrier
  push,       ///< everybody writes everybody's shard to it: one barrier
  packet,     ///< everybody sends everybody its shard, in packets: no barrier
};

/// All of them, in this order.
std::span<const ReduceScatterAlgorithm> reduce_scatter_algorithms();
std::string_view name(ReduceScatterAlgorithm algorithm);
/// The algorithm called `text`; throws `invalid_argument` with the known names.
ReduceScatterAlgorithm parse_reduce_scatter_algorithm(std::string_view text);

/// The same on every member.
struct ReduceScatterOptions {
  ReduceOp op = ReduceOp::sum;
  ReduceScatterAlgorithm algorithm = ReduceScatterAlgorithm::automatic;
  int blocks = 0;  ///< of the kernel, at most `Team::max_blocks`; 0: from the tuning table
  int tile = 0;    ///< 16-byte vectors a thread has on their way: 1, 2 or 4; 0: from the table
};

namespace detail {
void reduce_scatter(StreamRef& stream, const Team& team, const CollectiveBuffers& buffers,
                    const ReduceScatterOptions& options);
}

/// out[i] = the reduction of every member's in[r × count + i], for i below `count`, where r is this
/// rank's place: `in` has a shard of `count` elements for every member. `out` does not overlap
/// `in`, or is `in`, or is this rank's shard of it.
///
/// Otherwise as `all_reduce`: all algorithms give the same bits.
template <Number T>
void reduce_scatter(StreamRef& stream, const Team& team, T* out, const T* in, std::size_t count,
                    const ReduceScatterOptions& options = {}) {
  detail::reduce_scatter(stream, team, {in, out, count, data_type_of<T>(), false}, options);
}

/// The same on symmetric arrays, which may not overlap: peers read `in`.
template <Number T>
void reduce_scatter(StreamRef& stream, const Team& team, const SymmetricArray<T>& out,
                    const SymmetricArray<T>& in, std::size_t count,
                    const ReduceScatterOptions& options = {}) {
  detail::require_elements("reduce_scatter", "in", in.size(), count, team.size());
  detail::require_elements("reduce_scatter", "out", out.size(), count);
  detail::reduce_scatter(stream, team, {in.data(), out.data(), count, data_type_of<T>(), true},
                         options);
  detail::retain_captured(stream, in, out);
}

}  // namespace iridium
