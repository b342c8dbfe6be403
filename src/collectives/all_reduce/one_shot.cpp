#include "collectives/all_reduce/one_shot.h"

#include "collectives/all_reduce/launch.h"

namespace iridium {

void launch_one_shot_all_reduce(const CollectiveCall& call) {
  with_type(call.type, [&]<class T>(std::type_identity<T>) {
    with_tile(call.choice.tile, [&](auto vectors) {
      launch_call(call, [&](const Lane& lane) {
        return OneShotAllReduce<T, vectors>{lane, call.input<T>(), call.output<T>(),
                                            staged_rounds<T>(call, call.count), call.op};
      });
    });
  });
}

KernelList one_shot_all_reduce_kernels() {
  return kernels_of_all_types_and_tiles<OneShotAllReduce>();
}

}  // namespace iridium
