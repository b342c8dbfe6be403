#include "backend/cuda/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "backend/cuda/cuda_error.h"
#include "backend/cuda/driver.h"

namespace iridium {
namespace {

std::string looking_at(int device) {
  return fmt::format("cannot look at GPU {}", device);
}

std::string uuid_of(int device, CUdevice handle) {
  CUuuid uuid = {};
  check_cuda(driver().device_uuid(&uuid, handle), looking_at(device));
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i)
    text += fmt::format("{}{:02x}", i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                        static_cast<unsigned char>(uuid.bytes[i]));
  return text;
}

bool peer_attribute(const Gpu& from, const Gpu& to, CUdevice_P2PAttribute which) {
  int value = 0;
  check_cuda(driver().peer_attribute(&value, which, from.handle, to.handle),
             fmt::format("cannot ask for the link from GPU {} to GPU {}", from.device, to.device));
  return value != 0;
}

/// What NVML says of two GPUs.
class ManagedPair {
 public:
  ManagedPair(const std::string& from, const std::string& to) : nvml_(driver().nvml()) {
    known_ = nvml_ != nullptr && nvml_->device_by_uuid(from.c_str(), &from_) == 0 &&
             nvml_->device_by_uuid(to.c_str(), &to_) == 0;
  }
  bool known() const { return known_; }
  bool has(Nvml::Capability capability) const {
    int status = -1;
    return known_ && nvml_->peer_status(from_, to_, capability, &status) == 0 && status == 0;
  }

 private:
  const Nvml* nvml_;
  Nvml::Device* from_ = nullptr;
  Nvml::Device* to_ = nullptr;
  bool known_ = false;
};

}  // namespace

std::vector<Gpu> visible_gpus() {
  check_cuda(driver().init(0), "cannot start the CUDA driver");
  int count = 0;
  check_cuda(driver().device_count(&count), "cannot count the GPUs");
  std::vector<Gpu> gpus;
  for (int device = 0; device < count; ++device) {
    CUdevice handle = 0;
    check_cuda(driver().device_get(&handle, device), looking_at(device));
    gpus.push_back({device, handle, uuid_of(device, handle)});
  }
  return gpus;
}

int attribute(const Gpu& gpu, CUdevice_attribute which) {
  int value = 0;
  check_cuda(driver().device_attribute(&value, which, gpu.handle), looking_at(gpu.device));
  return value;
}

std::string gpu_name(const Gpu& gpu) {
  std::array<char, 256> text = {};
  check_cuda(driver().device_name(text.data(), static_cast<int>(text.size()) - 1, gpu.handle),
             looking_at(gpu.device));
  return text.data();
}

std::size_t gpu_memory(const Gpu& gpu) {
  std::size_t bytes = 0;
  check_cuda(driver().device_memory(&bytes, gpu.handle), looking_at(gpu.device));
  return bytes;
}

bool runs_on(std::string_view targets, int major, int minor) {
  const int device = 10 * major + minor;
  while (!targets.empty()) {
    const std::string_view target = targets.substr(0, targets.find(','));
    targets.remove_prefix(std::min(target.size() + 1, targets.size()));
    // CMake's words for every architecture that the compiler knows.
    if (target.starts_with("all")) return true;
    int number = 0;
    const auto parsed = std::from_chars(target.data(), target.data() + target.size(), number);
    const std::string_view rest =
        target.substr(static_cast<std::size_t>(parsed.ptr - target.data()));
    // Code with a letter runs on that very capability; without, machine code also on later ones of
    // the same generation, and PTX on all later ones.
    const bool has_letter = !rest.empty() && rest.front() != '-';
    const bool has_ptx = !rest.ends_with("-real") && !has_letter;
    if (number == device || (!has_letter && number < device && (has_ptx || number / 10 == major)))
      return true;
  }
  return false;
}

std::string object_to_gpu(const Gpu& gpu, Placement placement) {
  const int major = attribute(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  const int minor = attribute(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  if (!runs_on(IRIDIUM_CUDA_TARGETS, major, minor))
    return fmt::format(
        "this build has no code for compute capability {}.{}, only for {}: build with "
        "-D IRIDIUM_CUDA_ARCHITECTURES=portable, or a list",
        major, minor, IRIDIUM_CUDA_TARGETS);
  if (gpu_name(gpu).find(" MIG ") != std::string::npos)
    return "it is a MIG instance, whose memory peers cannot map";
  if (attribute(gpu, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0)
    return "it has no virtual memory management";
  if (attribute(gpu, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) == 0)
    return "it cannot export memory as a descriptor";
  if (placement == Placement::host &&
      attribute(gpu, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0)
    return "it cannot map host memory into its virtual memory";
  return {};
}

std::vector<Gpu> usable_gpus(const std::vector<Gpu>& gpus, Placement placement) {
  std::vector<Gpu> usable = gpus;
  std::erase_if(usable, [&](const Gpu& gpu) { return !object_to_gpu(gpu, placement).empty(); });
  return usable.empty() ? gpus : usable;
}

Link gpu_link(const Gpu& gpu, const std::string& uuid, const std::vector<Gpu>& visible) {
  if (uuid == gpu.uuid) return Link::shared;
  const ManagedPair pair(gpu.uuid, uuid);
  const auto peer = std::ranges::find(visible, uuid, &Gpu::uuid);
  if (peer == visible.end()) {
    // Hidden by CUDA_VISIBLE_DEVICES: the driver does not know it here, but maps its memory.
    if (!pair.known()) return Link::pcie;
    if (!pair.has(Nvml::can_read) || !pair.has(Nvml::can_write)) return Link::none;
    if (pair.has(Nvml::has_nvlink)) return Link::nvlink;
    return pair.has(Nvml::has_atomics) ? Link::pcie_atomics : Link::pcie;
  }
  int possible = 0;
  check_cuda(
      driver().can_access_peer(&possible, gpu.handle, peer->handle),
      fmt::format("cannot ask for the link from GPU {} to GPU {}", gpu.device, peer->device));
  if (possible == 0) return Link::none;
  if (pair.has(Nvml::has_nvlink)) return Link::nvlink;
  return peer_attribute(gpu, *peer, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)
             ? Link::pcie_atomics
             : Link::pcie;
}

Link host_memory_link(const Gpu& gpu) {
  return attribute(gpu, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED) != 0 ? Link::pcie_atomics
                                                                               : Link::pcie;
}

}  // namespace iridium
