#pragma once

#include "iridium/device/peers.h"

namespace iridium {

/// The member `i` places after this one: members begin with different peers, so that no link is
/// everybody's first.
IR_DEVICE inline int staggered(const Peers& peers, int i) {
  const int place = peers.rank() + i;
  return place < peers.size() ? place : place - peers.size();
}

}  // namespace iridium
