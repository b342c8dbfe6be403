// The driver's calls, looked up when they are first needed: a binary that linked the driver would
// not start without one.
#pragma once

#include <cuda.h>

namespace iridium {

struct Driver {
  decltype(&cuDeviceGet) device_get;
  decltype(&cuDeviceGetAttribute) device_get_attribute;
  decltype(&cuCtxGetCurrent) context_get;
  decltype(&cuCtxSetCurrent) context_set;
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
};

/// Throws `unsupported` with the call's name when the driver is missing or too old.
const Driver& driver();

}  // namespace iridium
