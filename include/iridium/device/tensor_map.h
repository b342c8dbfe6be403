// Descriptions of matrices for a GPU's tensor copies.
#pragma once

#include <cstdint>

namespace iridium {

/// A matrix as tensor copies see it (TMA; NVIDIA GPUs from Hopper on): its address, its shape, and
/// the box that one copy moves. Opaque, in the vendor's format. Made on the host; a kernel holds it
/// as a member and gives its address to the copies.
struct alignas(128) TensorMap {
  std::uint64_t words[16];
};

}  // namespace iridium
