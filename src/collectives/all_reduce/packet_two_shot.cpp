#include "collectives/all_reduce/packet_two_shot.h"

#include "collectives/all_reduce/launch.h"

namespace iridium {

void launch_packet_two_shot_all_reduce(const CollectiveCall& call) {
  const auto members = static_cast<std::size_t>(call.team.size());
  with_type(call.type, [&]<class T>(std::type_identity<T>) {
    constexpr std::size_t elements = PacketElements<T>::size;
    // A shard needs slots twice: for what is to be reduced, and for what is.
    const std::size_t most = packet_words(call) / 2 * members * elements;
    for (std::size_t first = 0; first < call.count; first += most) {
      const std::size_t count = call.count - first < most ? call.count - first : most;
      const std::size_t words = (count + elements - 1) / elements;
      const std::size_t shard = (words + members - 1) / members;
      CollectiveCall piece = call;
      piece.in = call.input<T>() + first;
      piece.out = call.output<T>() + first;
      piece.count = count;
      // Too little for everybody to have a shard.
      if ((members - 1) * shard >= words) {
        launch_packet_all_reduce(piece);
        continue;
      }
      launch_call(piece, [&](const Lane& lane) {
        return PacketTwoShotAllReduce<T>{lane,
                                         piece.input<T>(),
                                         piece.output<T>(),
                                         count,
                                         share_packets(piece, shard * sizeof(Packet)),
                                         call.op};
      });
    }
  });
}

KernelList packet_two_shot_all_reduce_kernels() {
  return kernels_of_all_types<PacketTwoShotAllReduce>();
}

}  // namespace iridium
