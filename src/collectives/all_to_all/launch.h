#pragma once

#include "collectives/call.h"
#include "iridium/all_to_all.h"

namespace iridium {

void launch_staged_all_to_all(const CollectiveCall& call);
void launch_staged_all_to_all(const CollectiveCall& call, const ExchangeParts& parts);
/// On symmetric buffers.
void launch_direct_all_to_all(const CollectiveCall& call);

KernelList all_to_all_kernels();

}  // namespace iridium
