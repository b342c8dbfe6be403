// What this build and this machine can do.
#pragma once

#include <string>
#include <vector>

#include "iridium/types.h"

namespace iridium {

/// One device of a backend.
struct DeviceInfo {
  std::string name;              ///< as the vendor calls it
  std::size_t memory_bytes = 0;  ///< memory that segments can come from
  int processors = 0;            ///< cores or multiprocessors
  std::string objection = {};    ///< why ranks cannot use it; empty when they can
};

/// One thing a backend can or cannot do.
struct Capability {
  std::string name;  ///< "ranks as threads"
  bool available = false;
  std::string detail;  ///< why not, or how
};

/// One backend: whether it can be used here, and if not, why.
struct BackendInfo {
  BackendKind kind = BackendKind::host;
  bool available = false;
  std::string reason;                    ///< why it is off; empty when available
  std::vector<DeviceInfo> devices;       ///< also those that ranks cannot use
  std::vector<Capability> capabilities;  ///< with more than one device, of the first usable one

  /// The devices that ranks can use, in the order of `devices`.
  std::vector<DeviceInfo> usable_devices() const;
};

/// Every backend Iridium knows, best first. Creates no context on any device.
std::vector<BackendInfo> describe_backends();

}  // namespace iridium
