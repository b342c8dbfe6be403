// Teams: an ordered list of ranks that act together.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "iridium/device/lane.h"
#include "iridium/stream.h"
#include "iridium/types.h"

namespace iridium {

namespace detail {
class TeamState;
}

/// Sizes of a team's lane: the part of every member's segment that the team's kernels talk through.
/// They and the flags must be the same on every rank.
struct TeamOptions {
  int max_blocks = 64;  ///< the largest grid of a call; the smallest among all ranks wins
  /// Grids are small enough that a kernel which waiting calls need finds room on a GPU that ranks
  /// share, also one made of clusters of 8 blocks with a processor each (docs/gpus.md). Default:
  /// what IRIDIUM_BESIDE_COMPUTE says, else true. With false grids may fill the GPU.
  std::optional<bool> beside_compute = {};
  /// No rank has calls or waits of another team in flight while it calls this one's, so that grids
  /// may take the room of the others.
  bool exclusive = false;
  std::size_t scratch_bytes = 8u << 20;  ///< staging area, per parity
  std::size_t packet_bytes = 2u << 20;   ///< payload of small messages, of all members, per parity
  std::string name = {};                 ///< for messages; default "team 3"
};

/// An ordered list of ranks with a lane of its own. Made by `Context::make_team` or
/// `Context::world`. Copies name the same team. When the last copy goes, the lane's memory is freed
/// like an array's.
///
/// The host calls below are collective over the members and end within the context's timeout. A
/// team in which one failed stays failed: every later call throws the first error again. They throw
/// `not_a_member` on other ranks, and `capture_unsupported` while a stream of the context is
/// capturing. Thread safety: calls from several threads are serialised; members must make them in
/// the same order.
class Team {
 public:
  /// This rank's place in the list; throws `not_a_member` elsewhere.
  int rank() const;
  int size() const;
  bool is_member() const;
  /// World ranks in the team's order.
  const std::vector<int>& ranks() const;
  const std::string& name() const;
  /// The largest grid every member can run.
  int max_blocks() const;
  /// Whether that leaves room for kernels that compute; see `TeamOptions`. Means nothing on CPUs.
  bool beside_compute() const;
  /// The worst link between two members. Without native atomics (`has_native_atomics`) a kernel may
  /// not update another member's memory: updates would be lost.
  Link link() const;

  /// The team's lane, for one launch of a kernel of one's own: two launches with the same value
  /// that overlap may go unnoticed. `operation` is what errors call the kernel. Throws the reason
  /// when the team has failed. Kernels may use it as long as the team lives.
  Lane lane(std::string_view operation = "kernel") const;
  /// Throws the reason when the team has failed. A kernel cannot throw: after waiting for a stream,
  /// this tells whether the team's work on it is right. Local, and allowed during captures.
  void check() const;
  /// Keeps the team alive for what `stream` runs or captures from here on, as
  /// `SymmetricArray::retain_on` does. The library's own operations do so themselves while
  /// Iridium captures.
  void retain_on(StreamRef& stream) const;

  /// Returns when every member has called it.
  void barrier();

  /// `value` as the member at place `root` passed it, on every member. For small values.
  template <class T>
  T broadcast(T value, int root) {
    static_assert(std::is_trivially_copyable_v<T>);
    broadcast_bytes(std::as_writable_bytes(std::span(&value, 1)), root);
    return value;
  }

  /// Every member's `value`, in the team's order. For small values. Waits for `patience` timeouts:
  /// where members may come late because their kernels waited in vain, two.
  template <class T>
  std::vector<T> all_gather(const T& value, int patience = 1) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> values(static_cast<std::size_t>(size()));
    all_gather_bytes(std::as_bytes(std::span(&value, 1)), std::as_writable_bytes(std::span(values)),
                     patience);
    return values;
  }

  /// The most bytes a member may contribute to one of the calls below.
  static constexpr std::size_t max_host_bytes = 256u << 10;
  /// `broadcast` for bytes: `bytes` is read at `root` and written elsewhere; the size must agree.
  void broadcast_bytes(std::span<std::byte> bytes, int root);
  /// `all_gather` for bytes: `all` has `size()` times `mine`'s size.
  void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all,
                        int patience = 1);

 private:
  friend class Context;
  friend struct detail::Access;
  explicit Team(std::shared_ptr<detail::TeamState> state);
  std::shared_ptr<detail::TeamState> state_;
};

}  // namespace iridium
