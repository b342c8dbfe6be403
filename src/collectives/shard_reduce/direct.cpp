#include "collectives/shard_reduce/kernels.h"
#include "collectives/shard_reduce/launch.h"

namespace iridium {

void launch_direct_shard_reduce(const CollectiveCall& call, ShardUse use) {
  with_type(call.type, [&]<class T>(std::type_identity<T>) {
    with_tile(call.choice.tile, [&](auto vectors) {
      launch_call(call, [&](const Lane& lane) {
        const auto members = static_cast<std::size_t>(lane.peers().size());
        const std::size_t total = use == ShardUse::gather ? call.count : members * call.count;
        const std::size_t stride =
            use == ShardUse::gather ? shard_stride<T>(call.count, members) : call.count;
        return DirectShardReduce<T, vectors>{
            lane,
            call.input<T>(),
            call.output<T>(),
            {total, stride, one_round(call, stride, vector_elements<T>)},
            call.op,
            use == ShardUse::gather};
      });
    });
  });
}

KernelList direct_shard_reduce_kernels() {
  return kernels_of_all_types_and_tiles<DirectShardReduce>();
}

}  // namespace iridium
