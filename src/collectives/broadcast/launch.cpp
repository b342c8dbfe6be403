#include "collectives/broadcast/launch.h"

#include "collectives/broadcast/kernels.h"

namespace iridium {
namespace {

using Byte = std::uint8_t;

}  // namespace

void launch_packet_broadcast(const CollectiveCall& call, int root) {
  for_each_packet_call(
      call, call.bytes(), 1, [&](std::size_t first, std::size_t bytes, const PacketShare& share) {
        // Only the root has to have one.
        const Byte* const in = call.in == nullptr ? nullptr : call.input<Byte>() + first;
        launch_call(call, [&](const Lane& lane) {
          return PacketBroadcast{lane, in, call.output<Byte>() + first, bytes, share, root};
        });
      });
}

void launch_staged_broadcast(const CollectiveCall& call, int root) {
  launch_call(call, [&](const Lane& lane) {
    return StagedBroadcast{lane, call.input<Byte>(), call.output<Byte>(),
                           staged_rounds<Byte>(call, call.bytes()), root};
  });
}

void launch_direct_broadcast(const CollectiveCall& call, int root) {
  launch_call(call, [&](const Lane& lane) {
    return DirectBroadcast{lane, call.input<Byte>(), call.output<Byte>(),
                           one_round(call, call.bytes(), vector_elements<Byte>), root};
  });
}

KernelList broadcast_kernels() {
  return {entry_of<PacketBroadcast>(), entry_of<StagedBroadcast>(), entry_of<DirectBroadcast>()};
}

}  // namespace iridium
