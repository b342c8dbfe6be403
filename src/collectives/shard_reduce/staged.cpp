#include "collectives/shard_reduce/kernels.h"
#include "collectives/shard_reduce/launch.h"

namespace iridium {

void launch_staged_shard_reduce(const CollectiveCall& call, ShardUse use) {
  with_type(call.type, [&]<class T>(std::type_identity<T>) {
    with_tile(call.choice.tile, [&](auto vectors) {
      launch_call(call, [&](const Lane& lane) {
        return StagedShardReduce<T, vectors>{
            lane,    call.input<T>(),        call.output<T>(), staged_shards<T>(call, use),
            call.op, use == ShardUse::gather};
      });
    });
  });
}

KernelList staged_shard_reduce_kernels() {
  return kernels_of_all_types_and_tiles<StagedShardReduce>();
}

}  // namespace iridium
