#include "collectives/all_gather/launch.h"

#include "collectives/all_gather/kernels.h"

namespace iridium {
namespace {

using Byte = std::uint8_t;

/// `staged`: how many members' bytes a member's scratch has to hold.
GatherBuffers staged_buffers(const CollectiveCall& call, int staged) {
  return {call.input<Byte>(), call.output<Byte>(),
          staged_rounds<Byte>(call, call.bytes(), static_cast<std::size_t>(staged))};
}

GatherBuffers direct_buffers(const CollectiveCall& call) {
  return {call.input<Byte>(), call.output<Byte>(),
          one_round(call, call.bytes(), vector_elements<Byte>)};
}

}  // namespace

void launch_staged_pull_gather(const CollectiveCall& call) {
  launch_call(call,
              [&](const Lane& lane) { return StagedPullGather{lane, staged_buffers(call, 1)}; });
}

void launch_staged_push_gather(const CollectiveCall& call) {
  with_tile(call.choice.tile, [&](auto vectors) {
    launch_call(call, [&](const Lane& lane) {
      return StagedPushGather<vectors>{lane, staged_buffers(call, call.team.size())};
    });
  });
}

void launch_direct_pull_gather(const CollectiveCall& call) {
  launch_call(call, [&](const Lane& lane) { return DirectPullGather{lane, direct_buffers(call)}; });
}

void launch_direct_push_gather(const CollectiveCall& call) {
  with_tile(call.choice.tile, [&](auto vectors) {
    launch_call(call, [&](const Lane& lane) {
      return DirectPushGather<vectors>{lane, direct_buffers(call)};
    });
  });
}

void launch_packet_gather(const CollectiveCall& call) {
  for_each_packet_call(
      call, call.bytes(), 1, [&](std::size_t first, std::size_t bytes, const PacketShare& share) {
        launch_call(call, [&](const Lane& lane) {
          return PacketGather{
              lane, call.input<Byte>() + first, call.output<Byte>() + first, bytes, call.bytes(),
              share};
        });
      });
}

KernelList all_gather_kernels() {
  KernelList list = {entry_of<PacketGather>(), entry_of<StagedPullGather>(),
                     entry_of<DirectPullGather>()};
  for (const int vectors : {1, 2, 4})
    with_tile(vectors, [&](auto tile) {
      list.push_back(entry_of<StagedPushGather<tile>>());
      list.push_back(entry_of<DirectPushGather<tile>>());
    });
  return list;
}

}  // namespace iridium
