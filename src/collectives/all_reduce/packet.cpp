#include "collectives/all_reduce/packet.h"

#include "collectives/all_reduce/launch.h"

namespace iridium {

void launch_packet_all_reduce(const CollectiveCall& call) {
  with_type(call.type, [&]<class T>(std::type_identity<T>) {
    for_each_packet_call(
        call, call.count, sizeof(T),
        [&](std::size_t first, std::size_t count, const PacketShare& share) {
          launch_call(call, [&](const Lane& lane) {
            return PacketAllReduce<T>{
                lane, call.input<T>() + first, call.output<T>() + first, count, share, call.op};
          });
        });
  });
}

KernelList packet_all_reduce_kernels() {
  return kernels_of_all_types<PacketAllReduce>();
}

}  // namespace iridium
