#include "collectives/reduce_scatter/packet.h"

#include "collectives/reduce_scatter/launch.h"

namespace iridium {

void launch_packet_reduce_scatter(const CollectiveCall& call) {
  with_type(call.type, [&]<class T>(std::type_identity<T>) {
    for_each_packet_call(
        call, call.count, sizeof(T),
        [&](std::size_t first, std::size_t count, const PacketShare& share) {
          launch_call(call, [&](const Lane& lane) {
            return PacketReduceScatter<T>{
                lane,   call.input<T>() + first, call.output<T>() + first, count, call.count, share,
                call.op};
          });
        });
  });
}

KernelList packet_reduce_scatter_kernels() {
  return kernels_of_all_types<PacketReduceScatter>();
}

}  // namespace iridium
