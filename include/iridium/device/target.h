// The target: all that differs between the machines kernels run on. Every function of a target
// takes the seat of the caller, which is null on a GPU.
#pragma once

#include "iridium/device/compiler.h"
#include "iridium/device/order.h"
#include "iridium/device/seat.h"

#if IR_ON_CUDA
#include "iridium/device/target_cuda.h"
#elif IR_ON_HIP
#include "iridium/device/target_hip.h"
#else
#include "iridium/device/target_host.h"
#endif
