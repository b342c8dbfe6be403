#pragma once

#include "collectives/call.h"

namespace iridium {

void launch_staged_pull_gather(const CollectiveCall& call);
void launch_staged_push_gather(const CollectiveCall& call);
// On symmetric buffers.
void launch_direct_pull_gather(const CollectiveCall& call);
void launch_direct_push_gather(const CollectiveCall& call);
void launch_packet_gather(const CollectiveCall& call);

KernelList all_gather_kernels();

}  // namespace iridium
