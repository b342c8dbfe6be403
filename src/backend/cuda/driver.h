// The driver's calls, looked up when they are first needed: a binary that linked the driver would
// not start without one.
#pragma once

#include <cuda.h>

#include "backend/cuda/nvml.h"

namespace iridium {

/// All that discovery, contexts, links and segments call. Tests put another table in its place.
struct Driver {
  // Discovery
  decltype(&cuInit) init;
  decltype(&cuDriverGetVersion) version;
  decltype(&cuDeviceGetCount) device_count;
  decltype(&cuDeviceGet) device_get;
  decltype(&cuDeviceGetName) device_name;
  decltype(&cuDeviceGetUuid) device_uuid;
  decltype(&cuDeviceTotalMem) device_memory;
  decltype(&cuDeviceGetAttribute) device_attribute;
  decltype(&cuDeviceCanAccessPeer) can_access_peer;
  decltype(&cuDeviceGetP2PAttribute) peer_attribute;
  /// NVML's calls; null where it is not installed.
  const Nvml* (*nvml)();
  // Contexts
  decltype(&cuDevicePrimaryCtxRetain) primary_context;
  decltype(&cuCtxGetCurrent) context_get;
  decltype(&cuCtxGetDevice) context_device;
  decltype(&cuCtxPushCurrent) context_push;
  decltype(&cuCtxPopCurrent) context_pop;
  decltype(&cuThreadExchangeStreamCaptureMode) exchange_capture_mode;
  decltype(&cuStreamGetCtx) stream_context;
  // What the runtime's calls of the same names would overwrite the caller's last error for
  decltype(&cuStreamQuery) stream_query;
  decltype(&cuEventQuery) event_query;
  // Memory
  decltype(&cuPointerGetAttribute) pointer_attribute;
  decltype(&cuMemGetInfo) mem_info;
  decltype(&cuMemCreate) mem_create;
  decltype(&cuMemRelease) mem_release;
  decltype(&cuMemExportToShareableHandle) mem_export;
  decltype(&cuMemImportFromShareableHandle) mem_import;
  decltype(&cuMemGetAllocationGranularity) mem_granularity;
  decltype(&cuMemAddressReserve) mem_reserve;
  decltype(&cuMemAddressFree) mem_unreserve;
  decltype(&cuMemMap) mem_map;
  decltype(&cuMemUnmap) mem_unmap;
  decltype(&cuMemSetAccess) mem_set_access;
  decltype(&cuTensorMapEncodeTiled) encode_tensor_map;
};

/// Whether there is a driver at all, however old or broken.
bool driver_is_loaded();
/// Throws `unsupported` with the call's name when the driver is missing or too old.
const Driver& driver();

/// The primary context of GPU `device`, retained when it is first asked for and never released:
/// users of the runtime have the same one. Throws what the driver says.
CUcontext primary_context(int device);

/// While it lives, `driver()` is `calls`, and no context is retained yet. For tests; one at a time.
class DriverOverride {
 public:
  explicit DriverOverride(const Driver& calls);
  ~DriverOverride();
  DriverOverride(const DriverOverride&) = delete;
  DriverOverride& operator=(const DriverOverride&) = delete;
};

}  // namespace iridium
