#pragma once

#include "collectives/call.h"

namespace iridium {

void launch_packet_reduce_scatter(const CollectiveCall& call);
KernelList packet_reduce_scatter_kernels();

}  // namespace iridium
