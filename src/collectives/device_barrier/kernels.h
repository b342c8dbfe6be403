#pragma once

#include "iridium/device/lane_call.h"
#include "runtime/library_kernels.h"

namespace iridium {

struct DeviceBarrier {
  Lane lane;

  IR_DEVICE void operator()(BlockOf<32> block) const {
    LaneCall call(lane, block);
    if (call.enter()) call.finish();
  }
};

KernelList device_barrier_kernels();

}  // namespace iridium
