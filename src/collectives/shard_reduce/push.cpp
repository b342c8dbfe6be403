#include "collectives/shard_reduce/push.h"

#include "collectives/shard_reduce/launch.h"

namespace iridium {

void launch_push_shard_reduce(const CollectiveCall& call, ShardUse use) {
  const ShardTarget target = use == ShardUse::keep ? ShardTarget::own_output
                             : call.symmetric      ? ShardTarget::all_outputs
                                                   : ShardTarget::all_scratch;
  with_type(call.type, [&]<class T>(std::type_identity<T>) {
    with_tile(call.choice.tile, [&](auto vectors) {
      launch_call(call, [&](const Lane& lane) {
        return PushShardReduce<T, vectors>{
            lane, call.input<T>(), call.output<T>(), staged_shards<T>(call, use), call.op, target};
      });
    });
  });
}

KernelList push_shard_reduce_kernels() {
  return kernels_of_all_types_and_tiles<PushShardReduce>();
}

}  // namespace iridium
