#include "collectives/call_check/launch.h"
#include "collectives/device_barrier/kernels.h"
#include "iridium/device_barrier.h"
#include "runtime/team_launch.h"

namespace iridium {

void device_barrier(StreamRef& stream, const Team& team) {
  compare_calls(stream, team, "device_barrier");
  launch_on_team(stream, team, "device_barrier", {.blocks = 1, .resident = true},
                 [](const Lane& lane) { return DeviceBarrier{lane}; });
}

KernelList device_barrier_kernels() {
  return {&detail::kernel_entry<DeviceBarrier, detail::ThisCompiler>()};
}

}  // namespace iridium
