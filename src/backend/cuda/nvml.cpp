#include "backend/cuda/nvml.h"

#include <dlfcn.h>

#include <optional>

namespace iridium {
namespace {

std::optional<Nvml> look_up_nvml() {
  void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  const auto init = reinterpret_cast<int (*)()>(::dlsym(library, "nvmlInit_v2"));
  Nvml calls = {};
  calls.device_by_uuid = reinterpret_cast<decltype(calls.device_by_uuid)>(
      ::dlsym(library, "nvmlDeviceGetHandleByUUID"));
  calls.peer_status =
      reinterpret_cast<decltype(calls.peer_status)>(::dlsym(library, "nvmlDeviceGetP2PStatus"));
  if (init == nullptr || calls.device_by_uuid == nullptr || calls.peer_status == nullptr ||
      init() != 0)
    return std::nullopt;
  return calls;
}

}  // namespace

const Nvml* open_nvml() {
  static const std::optional<Nvml> calls = look_up_nvml();
  return calls ? &*calls : nullptr;
}

}  // namespace iridium
