// Launches of the kernels in shard_reduce/kernels.h, for reduce-scatter and two-shot all-reduce.
#pragma once

#include "collectives/call.h"

namespace iridium {

/// What becomes of the reduced shards.
enum class ShardUse {
  keep,    ///< every member has its own: reduce-scatter; `count` is a shard's
  gather,  ///< every member gets all: all-reduce; `count` is that of all shards
};

/// What members stage when each has a slot for every shard, or for every source of its own.
template <class T>
Shards staged_shards(const CollectiveCall& call, ShardUse use) {
  const auto members = static_cast<std::size_t>(call.team.size());
  if (use == ShardUse::gather) return cut_into_shards<T>(call, members * sizeof(T));
  return {members * call.count, call.count,
          staged_rounds<T>(call, call.count, members * sizeof(T))};
}

void launch_staged_shard_reduce(const CollectiveCall& call, ShardUse use);
/// On symmetric buffers.
void launch_direct_shard_reduce(const CollectiveCall& call, ShardUse use);
/// Reads no other member's memory.
void launch_push_shard_reduce(const CollectiveCall& call, ShardUse use);

KernelList staged_shard_reduce_kernels();
KernelList direct_shard_reduce_kernels();
KernelList push_shard_reduce_kernels();

}  // namespace iridium
