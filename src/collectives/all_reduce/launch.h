// The all-reduce algorithms, a file each: how a call's kernel is made and launched.
#pragma once

#include "collectives/call.h"

namespace iridium {

void launch_packet_all_reduce(const CollectiveCall& call);
void launch_packet_two_shot_all_reduce(const CollectiveCall& call);
void launch_one_shot_all_reduce(const CollectiveCall& call);
void launch_ring_all_reduce(const CollectiveCall& call);
void launch_atomic_all_reduce(const CollectiveCall& call);

KernelList packet_all_reduce_kernels();
KernelList packet_two_shot_all_reduce_kernels();
KernelList one_shot_all_reduce_kernels();
KernelList ring_all_reduce_kernels();
KernelList atomic_all_reduce_kernels();

}  // namespace iridium
