// NVIDIA's management library, which also knows GPUs that this process cannot see.
#pragma once

namespace iridium {

/// NVML's calls, opened on demand; each returns 0 for success.
struct Nvml {
  struct Device;
  enum Capability : int { can_read = 0, can_write = 1, has_nvlink = 2, has_atomics = 3 };

  /// `uuid`: "GPU-…".
  int (*device_by_uuid)(const char* uuid, Device** device);
  /// `status`: 0 when the first of the two has the capability towards the second.
  int (*peer_status)(Device* from, Device* to, Capability capability, int* status);
};

/// Null where NVML is not installed or cannot be initialized.
const Nvml* open_nvml();

}  // namespace iridium
