// What a `Team` names.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "iridium/team.h"
#include "runtime/context_core.h"
#include "runtime/lane_layout.h"

namespace iridium::detail {

class TeamState final : public Resource, private ChannelWatcher {
 public:
  /// Collective over the world, in the same order on every rank.
  TeamState(std::shared_ptr<ContextCore> core, std::vector<int> ranks, const TeamOptions& options);
  ~TeamState() override;
  TeamState(const TeamState&) = delete;
  TeamState& operator=(const TeamState&) = delete;

  void keep_until(std::shared_ptr<const Marker> work) const override {
    core_->streams()->add_work(std::move(work));
  }

  /// Throws `not_a_member`, naming `call`.
  void require_member(const std::string& call) const;
  /// Throws `invalid_argument` unless the range lies in one symmetric array, and `unsupported` in a
  /// forked child.
  void require_symmetric(const char* call, const void* address, std::size_t bytes) const;
  /// In checked mode, throws `invalid_argument` for memory that kernels of this rank do not reach.
  void require_reachable(const char* call, const void* address, std::size_t bytes) const;
  /// Throws `invalid_argument` for a place that does not exist.
  void require_place(const char* call, int place) const;
  /// Where the member at `place`, which exists, has its counterpart of this rank's `mine`.
  std::byte* counterpart(const void* mine, int place) const;
  /// A host call: every member's `mine`. Waits for `patience` timeouts: for calls before which
  /// members may wait for each other in kernels.
  std::vector<Contribution> exchange(const std::string& call, Bytes mine, int patience = 1);

  /// The lane for kernels of `operation`; throws like `require_member` and `check`.
  Lane lane(std::string_view operation) const;
  /// Throws the reason when the team has failed, on the device or between hosts.
  void check() const;

  const ContextCore& core() const { return *core_; }
  const std::vector<int>& ranks() const { return channel_.members; }
  const std::string& name() const { return channel_.name; }
  int place() const { return place_; }
  int max_blocks() const { return max_blocks_; }
  bool beside_compute() const { return beside_compute_; }
  bool exclusive() const { return exclusive_; }
  /// The worst one between two members.
  Link link() const { return link_; }
  /// Throws `unsupported` where members cannot update each other's memory atomically, which `what`
  /// would do.
  void require_native_atomics(const std::string& what) const;
  /// The members' device as the tuning table names it; empty when they have different ones.
  const std::string& device() const { return device_; }
  const LaneLayout& layout() const { return layout_; }

 private:
  void set_up_lane();
  void on_fault() override;
  void on_left(int rank) override;
  /// Tells the other members' hosts of a fault that a kernel found, and throws it.
  void throw_device_fault() const;

  const std::shared_ptr<ContextCore> core_;
  Channel channel_;
  int place_ = -1;  ///< of this rank in the list; −1 for no member
  int max_blocks_ = 0;
  bool beside_compute_ = true;
  bool exclusive_ = false;
  Link link_ = Link::shared;
  std::string device_;
  LaneLayout layout_;
  std::shared_ptr<Allocation> lane_;
  std::shared_ptr<LaneStatus> status_;
  mutable std::atomic<std::uint32_t> next_call_id_ = 1;
};

}  // namespace iridium::detail
