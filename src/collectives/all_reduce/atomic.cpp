#include "collectives/all_reduce/atomic.h"

#include "collectives/all_reduce/launch.h"

namespace iridium {

void launch_atomic_all_reduce(const CollectiveCall& call) {
  with_type(call.type, [&]<class T>(std::type_identity<T>) {
    launch_call(call, [&](const Lane& lane) {
      return AtomicAllReduce<T>{
          lane, call.input<T>(), call.output<T>(),
          cut_into_shards<T>(call, sizeof(typename AtomicAllReduce<T>::Total)), call.op};
    });
  });
}

KernelList atomic_all_reduce_kernels() {
  return kernels_of_all_types<AtomicAllReduce>();
}

}  // namespace iridium
