#include "backend/nvidia_sign.h"

#include <exception>
#include <fstream>
#include <system_error>

namespace iridium {
namespace {

namespace fs = std::filesystem;

std::string first_word(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

/// A display controller: NVIDIA makes devices for sound and networks, too.
bool is_nvidia_gpu(const fs::path& pci_device) {
  return first_word(pci_device / "vendor") == "0x10de" &&
         first_word(pci_device / "class").starts_with("0x03");
}

}  // namespace

std::string sign_of_nvidia_gpu(const fs::path& root) noexcept try {
  std::error_code error;
  for (const char* path : {"dev/nvidia0", "dev/nvidiactl", "proc/driver/nvidia/version"})
    if (fs::exists(root / path, error)) return fs::path("/") / path;
  const char* const devices = "sys/bus/pci/devices";
  for (fs::directory_iterator device(root / devices, error), end; !error && device != end;
       device.increment(error))
    if (is_nvidia_gpu(device->path())) return fs::path("/") / devices / device->path().filename();
  return {};
} catch (const std::exception&) {
  return {};
}

}  // namespace iridium
