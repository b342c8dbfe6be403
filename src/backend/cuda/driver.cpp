#include "backend/cuda/driver.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "iridium/errors.h"

namespace iridium {
namespace {

/// The oldest driver interface that has everything: CUDA 12.2 brought segments in host memory.
constexpr unsigned int interface_version = 12020;

template <class Function>
void look_up(const char* name, Function*& function) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t status = cudaGetDriverEntryPointByVersion(name, &address, interface_version,
                                                              cudaEnableDefault, &found);
  if (status != cudaSuccess || found != cudaDriverEntryPointSuccess) {
    static_cast<void>(cudaGetLastError());
    throw Error(Errc::unsupported,
                fmt::format("the CUDA driver has no {} of version {}.{}: it is missing or too old",
                            name, interface_version / 1000, interface_version % 1000 / 10));
  }
  function = reinterpret_cast<Function*>(address);
}

Driver look_up_all() {
  Driver calls = {};
  look_up("cuDeviceGet", calls.device_get);
  look_up("cuDeviceGetAttribute", calls.device_get_attribute);
  look_up("cuCtxGetCurrent", calls.context_get);
  look_up("cuCtxSetCurrent", calls.context_set);
  look_up("cuMemCreate", calls.mem_create);
  look_up("cuMemRelease", calls.mem_release);
  look_up("cuMemExportToShareableHandle", calls.mem_export);
  look_up("cuMemImportFromShareableHandle", calls.mem_import);
  look_up("cuMemGetAllocationGranularity", calls.mem_granularity);
  look_up("cuMemAddressReserve", calls.mem_reserve);
  look_up("cuMemAddressFree", calls.mem_unreserve);
  look_up("cuMemMap", calls.mem_map);
  look_up("cuMemUnmap", calls.mem_unmap);
  look_up("cuMemSetAccess", calls.mem_set_access);
  return calls;
}

}  // namespace

const Driver& driver() {
  static const Driver calls = look_up_all();
  return calls;
}

}  // namespace iridium
