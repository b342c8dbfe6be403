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

}  // namespace iridium
