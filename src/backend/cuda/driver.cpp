#include "backend/cuda/driver.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <atomic>

#include "backend/cuda/cuda_error.h"
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
  if (status != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    throw Error(Errc::unsupported,
                "the CUDA driver does not start: " + describe_cuda_error(status));
  }
  if (found != cudaDriverEntryPointSuccess)
    throw Error(Errc::unsupported,
                fmt::format("the CUDA driver has no {} of version {}.{}: it is too old", name,
                            interface_version / 1000, interface_version % 1000 / 10));
  function = reinterpret_cast<Function*>(address);
}

Driver look_up_all() {
  if (!driver_is_loaded())
    throw Error(Errc::unsupported,
                "libcuda.so.1 cannot be loaded: no NVIDIA driver is installed, or this container "
                "was started without it (docker run --gpus all)");
  Driver calls = {};
  look_up("cuInit", calls.init);
  look_up("cuDriverGetVersion", calls.version);
  look_up("cuDeviceGetCount", calls.device_count);
  look_up("cuDeviceGet", calls.device_get);
  look_up("cuDeviceGetName", calls.device_name);
  look_up("cuDeviceGetUuid", calls.device_uuid);
  look_up("cuDeviceTotalMem", calls.device_memory);
  look_up("cuDeviceGetAttribute", calls.device_attribute);
  look_up("cuDeviceCanAccessPeer", calls.can_access_peer);
  look_up("cuDeviceGetP2PAttribute", calls.peer_attribute);
  calls.nvml = open_nvml;
  look_up("cuDevicePrimaryCtxRetain", calls.primary_context);
  look_up("cuCtxGetCurrent", calls.context_get);
  look_up("cuCtxGetDevice", calls.context_device);
  look_up("cuCtxPushCurrent", calls.context_push);
  look_up("cuCtxPopCurrent", calls.context_pop);
  look_up("cuThreadExchangeStreamCaptureMode", calls.exchange_capture_mode);
  look_up("cuStreamGetCtx", calls.stream_context);
  look_up("cuStreamQuery", calls.stream_query);
  look_up("cuEventQuery", calls.event_query);
  look_up("cuPointerGetAttribute", calls.pointer_attribute);
  look_up("cuMemGetInfo", calls.mem_info);
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
  look_up("cuTensorMapEncodeTiled", calls.encode_tensor_map);
  return calls;
}

std::atomic<const Driver*> override_calls = nullptr;

constexpr std::size_t most_devices = 128;
using Contexts = std::array<std::atomic<CUcontext>, most_devices>;

/// By device; null where none is retained yet.
Contexts& retained_contexts() {
  static Contexts contexts = {};
  return contexts;
}

}  // namespace

bool driver_is_loaded() {
  if (override_calls.load(std::memory_order_acquire) != nullptr) return true;
  int version = 0;
  if (cudaDriverGetVersion(&version) == cudaSuccess && version != 0) return true;
  static_cast<void>(cudaGetLastError());
  return false;
}

const Driver& driver() {
  if (const Driver* const calls = override_calls.load(std::memory_order_acquire)) return *calls;
  static const Driver calls = look_up_all();
  return calls;
}

CUcontext primary_context(int device) {
  std::atomic<CUcontext>& retained = retained_contexts().at(static_cast<std::size_t>(device));
  CUcontext context = retained.load(std::memory_order_acquire);
  if (context != nullptr) return context;
  CUdevice handle = 0;
  check_cuda(driver().device_get(&handle, device), fmt::format("cannot look at GPU {}", device));
  check_cuda(driver().primary_context(&context, handle),
             fmt::format("cannot make a CUDA context on GPU {}", device));
  // Another thread may have retained it, too: once more than needed does no harm.
  retained.store(context, std::memory_order_release);
  return context;
}

DriverOverride::DriverOverride(const Driver& calls) {
  for (auto& context : retained_contexts()) context = nullptr;
  override_calls = &calls;
}
DriverOverride::~DriverOverride() {
  for (auto& context : retained_contexts()) context = nullptr;
  override_calls = nullptr;
}

}  // namespace iridium
