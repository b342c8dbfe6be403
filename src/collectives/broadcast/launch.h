#pragma once

#include "collectives/call.h"

namespace iridium {

void launch_packet_broadcast(const CollectiveCall& call, int root);
void launch_staged_broadcast(const CollectiveCall& call, int root);
/// On symmetric buffers.
void launch_direct_broadcast(const CollectiveCall& call, int root);

KernelList broadcast_kernels();

}  // namespace iridium
