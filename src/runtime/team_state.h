// What a `Team` names.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "iridium/team.h"
#include "runtime/context_core.h"
#include "runtime/lane_layout.h"

namespace iridium::detail {

class TeamState {
 public:
  /// Collective over the world, in the same order on every rank.
  TeamState(std::shared_ptr<ContextCore> core, std::vector<int> ranks, const TeamOptions& options);
  ~TeamState();
  TeamState(const TeamState&) = delete;
  TeamState& operator=(const TeamState&) = delete;

  /// Throws `not_a_member`, naming `call`.
  void require_member(const std::string& call) const;
  std::vector<Contribution> exchange(const std::string& call, Bytes mine);

  const std::vector<int>& ranks() const { return channel_.members; }
  const std::string& name() const { return channel_.name; }
  int place() const { return place_; }
  int max_blocks() const { return max_blocks_; }

 private:
  const std::shared_ptr<ContextCore> core_;
  Channel channel_;
  int place_ = -1;  ///< of this rank in the list; −1 for no member
  int max_blocks_ = 0;
  LaneLayout layout_;
  std::shared_ptr<Allocation> lane_;
};

}  // namespace iridium::detail
