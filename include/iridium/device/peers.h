// The members of a team, as a kernel addresses them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "iridium/device/compiler.h"

namespace iridium {

inline constexpr int max_team_size = 64;

/// Translates addresses between the members' segments. Members are named by their place in the
/// team.
class Peers {
 public:
  /// `ranks` (null when the members are evenly spaced) lies where kernels of this rank can read it.
  struct Terms {
    int place = 0;
    int size = 1;
    int rank = 0;                       ///< this member's, in the world
    bool on_one_device = false;         ///< memory and kernels of all members are
    bool native_atomics = true;         ///< members can update each other's memory atomically
    std::ptrdiff_t segment_stride = 0;  ///< bytes between the segments of neighbouring ranks
    std::ptrdiff_t place_stride = 0;    ///< bytes between those of neighbouring places
    const std::uint8_t* ranks = nullptr;
  };

  Peers() = default;
  IR_DEVICE explicit Peers(const Terms& terms) : terms_(terms) {}

  /// This rank's place.
  IR_DEVICE int rank() const { return terms_.place; }
  IR_DEVICE int size() const { return terms_.size; }
  /// Whether memory and kernels of all members are on this rank's device.
  IR_DEVICE bool are_on_one_device() const { return terms_.on_one_device; }

  /// Whether a kernel may update another member's memory atomically. Where it may not, such updates
  /// can be lost: over PCIe, a read and a write that are not one.
  IR_DEVICE bool have_native_atomics() const { return terms_.native_atomics; }

  /// The counterpart, at the member at `place`, of my object at `mine`, which lies in my segment.
  template <class T>
  IR_DEVICE T* at(T* mine, int place) const {
    const std::ptrdiff_t distance = terms_.ranks == nullptr
                                        ? (place - terms_.place) * terms_.place_stride
                                        : (rank_at(place) - terms_.rank) * terms_.segment_stride;
    using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
    return reinterpret_cast<T*>(reinterpret_cast<Byte*>(mine) + distance);
  }

 private:
  IR_DEVICE int rank_at(int place) const {
#if IR_ON_CUDA
    // Blocks have one dimension, so this is 0, but ptxas does not know, and keeps the rank out of
    // the uniform registers. What 13.0 makes of moving it there, `@P0 R2UR UR8, R2` and `CS2R R2,
    // SRZ` behind it, left the rank in R2 on an H200, and copies began so many elements late
    // (tools/check_sass.py looks for such code).
    unsigned zero;
    asm("mov.u32 %0, %%tid.y;" : "=r"(zero));
    place += static_cast<int>(zero);
#endif
    return terms_.ranks[place];
  }

  Terms terms_;
};

}  // namespace iridium
