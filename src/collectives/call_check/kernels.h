#pragma once

#include "iridium/device/lane_call.h"

namespace iridium {

/// Members tell each other what they are about to call; a difference fails the team.
struct CallCheck {
  Lane lane;
  CallRecord mine;
  std::uint64_t received[max_team_size];  ///< bytes this member expects of each place

  IR_DEVICE void operator()(BlockOf<64> block) const {
    LaneCall call(lane, block);
    if (!call.begin()) return;
    CallRecord& told = lane.state()->call;
    if (block.is_leader()) {
      told = mine;
      told[CallTerm::step].words[0] = call.step();
    }
    if (!call.barrier()) return;
    if (block.any(block.is_leader() && !agrees(block, told))) return;
    call.leave();
  }

 private:
  /// By one thread. False when it has failed the team.
  IR_DEVICE bool agrees(BlockOf<64> block, CallRecord& told) const {
    const Peers& peers = lane.peers();
    FaultRecord fault = {};
    fault.step = static_cast<std::uint32_t>(told[CallTerm::step].words[0]);
    IR_ROLLED for (int place = 0; place < peers.size(); ++place) {
      const CallRecord& theirs = *peers.at(&told, place);
      fault.seen = static_cast<std::uint32_t>(place);
      IR_ROLLED for (std::uint32_t term = 0; term < call_term_count; ++term) {
        const std::uint64_t* const own = told.terms[term].words;
        const std::uint64_t* const other = theirs.terms[term].words;
        if (own[0] == other[0] && own[1] == other[1] && own[2] == other[2]) continue;
        fault.kind = FaultKind::calls_differ;
        fault.expected = term;
        IR_ROLLED for (int i = 0; i < 3; ++i) {
          fault.detail[i] = own[i];
          fault.detail[3 + i] = other[i];
        }
        detail::raise(block, lane, fault);
        return false;
      }
      if (theirs.sent[peers.rank()] == received[place]) continue;
      fault.kind = FaultKind::parts_differ;
      fault.detail[0] = received[place];
      fault.detail[1] = theirs.sent[peers.rank()];
      detail::raise(block, lane, fault);
      return false;
    }
    return true;
  }
};

}  // namespace iridium
