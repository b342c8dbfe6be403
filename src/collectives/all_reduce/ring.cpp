#include "collectives/all_reduce/ring.h"

#include "collectives/all_reduce/launch.h"

namespace iridium {

void launch_ring_all_reduce(const CollectiveCall& call) {
  with_type(call.type, [&]<class T>(std::type_identity<T>) {
    launch_call(call, [&](const Lane& lane) {
      const auto members = static_cast<std::size_t>(lane.peers().size());
      return RingAllReduce<T>{
          lane, call.input<T>(), call.output<T>(),
          cut_into_shards<T>(call, members * (sizeof(T) + sizeof(Accumulator<T>))), call.op};
    });
  });
}

KernelList ring_all_reduce_kernels() {
  return kernels_of_all_types<RingAllReduce>();
}

}  // namespace iridium
