// NVIDIA GPUs of the machine, whether or not this process can use them.
#pragma once

#include <filesystem>
#include <string>

namespace iridium {

/// The file that shows that the machine has an NVIDIA GPU, such as "/dev/nvidia0"; empty where none
/// does. Asks the kernel alone, which also knows GPUs without a driver and most of those that a
/// container hides. Never throws. Tests have another `root`.
std::string sign_of_nvidia_gpu(const std::filesystem::path& root = "/") noexcept;

}  // namespace iridium
