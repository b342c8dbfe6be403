#include "collectives/shard_reduce/kernels.h"
#include "collectives/shard_reduce/launch.h"

namespace iridium {

void launch_staged_shard_reduce(const CollectiveCall& call, ShardUse use) {
  with_type(call.type, [&]<class T>(std::type_identity<T>) {
    with_tile(call.choice.tile, [&](auto vectors) {
      launch_call(call, [&](const Lane& lane) {
        const auto members = static_cast<std::size_t>(lane.peers().size());
        const Shards shards = use == ShardUse::gather
                                  ? cut_into_shards<T>(call, members * sizeof(T))
                                  : Shards{members * call.count, call.count,
                                           staged_rounds<T>(call, call.count, members * sizeof(T))};
        return StagedShardReduce<T, vectors>{lane,   call.input<T>(), call.output<T>(),
                                             shards, call.op,         use == ShardUse::gather};
      });
    });
  });
}

KernelList staged_shard_reduce_kernels() {
  return kernels_of_all_types_and_tiles<StagedShardReduce>();
}

}  // namespace iridium
