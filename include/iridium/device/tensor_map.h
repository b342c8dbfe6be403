// Descriptions of matrices in memory that a GPU copies by on its own.
#pragma once

#include <cstdint>

namespace iridium {

/// What an NVIDIA GPU's tensor copies (TMA, from Hopper on) know of a matrix: where it is, its shape
/// and the box that a copy moves. An opaque value in the vendor's own form, made on the host; a
/// kernel has it as a member, and copies by its address.
struct alignas(128) TensorMap {
  std::uint64_t words[16];
};

}  // namespace iridium
