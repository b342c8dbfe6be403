// All-reduce: every member gets the reduction of all members' elements.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "iridium/collective_buffers.h"

namespace iridium {

/// How it is done; docs/algorithms.md has the steps of each. NVIDIA's GPUs take subnormals for
/// zeros in `atomic`.
enum class AllReduceAlgorithm {
  automatic,        ///< from the tuning table, by bytes, members and device
  packet,           ///< everybody sends everything, in packets: no barrier
  packet_two_shot,  ///< everybody reduces a shard and sends it on, in packets: no barrier
  one_shot,         ///< everybody reads everything: one barrier
  two_shot,         ///< everybody reduces a shard and reads the others: two barriers
  two_shot_push,    ///< the same by writing alone, for links over which reading is slow
  ring,             ///< partial results go around, in a rotated order
  atomic,           ///< members add to the owner's sums: sum and avg; bits may differ between runs
};

/// All of them, in this order.
std::span<const AllReduceAlgorithm> all_reduce_algorithms();
std::string_view name(AllReduceAlgorithm algorithm);
/// The algorithm called `text`; throws `invalid_argument` with the known names.
AllReduceAlgorithm parse_all_reduce_algorithm(std::string_view text);

/// The same on every member.
struct AllReduceOptions {
  ReduceOp op = ReduceOp::sum;
  AllReduceAlgorithm algorithm = AllReduceAlgorithm::automatic;
  int blocks = 0;  ///< of the kernel, at most `Team::max_blocks`; 0: from the tuning table
  int tile = 0;    ///< 16-byte vectors a thread has on their way: 1, 2 or 4; 0: from the table
};

namespace detail {
void all_reduce(StreamRef& stream, const Team& team, const CollectiveBuffers& buffers,
                const AllReduceOptions& options);
}

/// out[i] = the reduction of every member's in[i], for i below `count`. Any memory that kernels of
/// this rank reach; `out` is `in`, or does not overlap it.
///
/// Collective over the team. Returns at once; can be captured. Throws before anything is launched:
/// `invalid_argument`, `not_a_member`, or the reason when the team has failed. All members get the
/// same bits, in every run, and from every algorithm but `ring` and `atomic`.
template <Number T>
void all_reduce(StreamRef& stream, const Team& team, T* out, const T* in, std::size_t count,
                const AllReduceOptions& options = {}) {
  detail::all_reduce(stream, team, {in, out, count, data_type_of<T>(), false}, options);
}

/// The same on symmetric arrays: peers read and write them where that is faster.
template <Number T>
void all_reduce(StreamRef& stream, const Team& team, const SymmetricArray<T>& out,
                const SymmetricArray<T>& in, std::size_t count,
                const AllReduceOptions& options = {}) {
  detail::require_elements("all_reduce", "in", in.size(), count);
  detail::require_elements("all_reduce", "out", out.size(), count);
  detail::all_reduce(stream, team, {in.data(), out.data(), count, data_type_of<T>(), true},
                     options);
  detail::retain_captured(stream, in, out);
}

}  // namespace iridium
