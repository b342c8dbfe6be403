#pragma once

#include "iridium/device/lane_call.h"
#include "runtime/library_kernels.h"

namespace iridium {

struct DeviceBarrier {
  Lane lane;

  // Two warps: one for the flags, one for the lane's books.
  IR_DEVICE void operator()(BlockOf<64> block) const { LaneCall(lane, block).meet(); }
};

KernelList device_barrier_kernels();

}  // namespace iridium
