// Numbers of 8 bits for matrix products.
#pragma once

#include <cstdint>

#include "iridium/device/number.h"

namespace iridium {

namespace detail {

IR_DEVICE constexpr float widen_e4m3(std::uint8_t bits) {
  const std::uint32_t magnitude = bits & 0x7fu;
  // Below 2^-6 a step is 2^-9: integers' arithmetic is exact.
  const std::uint32_t subnormal = float_bits(static_cast<float>(magnitude) * 0x1p-9f);
  const std::uint32_t normal = (magnitude << 20) + (120u << 23);
  const std::uint32_t number = select(magnitude < 8u, subnormal, normal);
  return float_of(select(magnitude == 0x7fu, 0x7fffffffu, number) | (bits & 0x80u) << 24);
}

IR_DEVICE constexpr std::uint8_t narrow_e4m3(float value) {
  constexpr std::uint32_t smallest_normal = 121u << 23;  // 2^-6
  constexpr std::uint32_t infinity = 255u << 23;
  const std::uint32_t bits = float_bits(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Beside 2^14 a float's last bit is worth 2^-9, as a subnormal's is: the sum rounds for us.
  const std::uint32_t small = magnitude < smallest_normal ? magnitude : smallest_normal;
  const std::uint32_t subnormal = float_bits(float_of(small) + 0x1p14f) - float_bits(0x1p14f);
  const std::uint32_t normal = (magnitude - (120u << 23) + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20;
  const std::uint32_t rounded = select(magnitude < smallest_normal, subnormal, normal);
  // Everything from 2^9 on, and what rounds to more than 448.
  const bool is_over = magnitude >= (136u << 23) || rounded > 0x7eu;
  const std::uint32_t number = select(is_over, 0x7eu, rounded) | (bits >> 24 & 0x80u);
  return static_cast<std::uint8_t>(select(magnitude > infinity, 0x7fu, number));
}

}  // namespace detail

/// fp8 with 4 bits of exponent and 3 of fraction: ±448 at most, no infinities, one NaN. From a
/// float it rounds to nearest even, and what is larger becomes ±448. To a float it is exact. An
/// element of matrices to be multiplied; collectives have none of it.
struct e4m3 {
  std::uint8_t bits;

  e4m3() = default;
  IR_DEVICE explicit constexpr e4m3(float value) : bits(detail::narrow_e4m3(value)) {}
  IR_DEVICE explicit constexpr operator float() const { return detail::widen_e4m3(bits); }
};

}  // namespace iridium
