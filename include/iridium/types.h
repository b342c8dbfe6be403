// Small types that several public headers share.
#pragma once

#include <string_view>

namespace iridium {

/// Where ranks keep their segments and run their kernels.
enum class BackendKind {
  host,  ///< CPU threads and memfd memory; always built
  cuda,  ///< NVIDIA GPUs
  hip,   ///< AMD GPUs
};

/// The backend's name as options, variables and messages spell it: "host", "cuda", "hip".
std::string_view name(BackendKind kind);

/// The backend called `text`; throws `invalid_argument` with the known names.
BackendKind parse_backend(std::string_view text);

/// Which memory a rank's segment lies in. On the host backend there is only one kind.
enum class Placement {
  device,  ///< the device's own memory
  host,    ///< the host's memory near the device, mapped for CPU and device: slower, larger
};

/// "device" or "host".
std::string_view name(Placement placement);

/// The placement called `text`; throws `invalid_argument` with the known names.
Placement parse_placement(std::string_view text);

/// How the kernels of one rank reach the segment of another. From the best to the worst.
enum class Link {
  shared,        ///< both run on one device, or on CPUs of one host
  apart,         ///< the same, by choice: they behave as if each had a device of its own
  nvlink,        ///< NVLink between GPUs
  pcie_atomics,  ///< PCIe, with native atomics
  pcie,          ///< PCIe without them: nobody may update a peer's memory atomically
  none,          ///< not at all
};

/// "shared", "apart", "nvlink", "pcie_atomics", "pcie" or "none".
std::string_view name(Link link);

/// The link called `text`; throws `invalid_argument` with the known names.
Link parse_link(std::string_view text);

/// Whether one side can update the other's memory atomically.
constexpr bool has_native_atomics(Link link) {
  return link < Link::pcie;
}

}  // namespace iridium
