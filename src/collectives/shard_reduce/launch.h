// Launches of the kernels in shard_reduce/kernels.h, for reduce-scatter and two-shot all-reduce.
#pragma once

#include "collectives/call.h"

namespace iridium {

/// What becomes of the reduced shards.
enum class ShardUse {
  keep,    ///< every member has its own: reduce-scatter; `count` is a shard's
  gather,  ///< every member gets all: all-reduce; `count` is that of all shards
};

void launch_staged_shard_reduce(const CollectiveCall& call, ShardUse use);
/// On symmetric buffers.
void launch_direct_shard_reduce(const CollectiveCall& call, ShardUse use);

KernelList staged_shard_reduce_kernels();
KernelList direct_shard_reduce_kernels();

}  // namespace iridium
