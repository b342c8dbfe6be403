// The element types kernels compute with, and arithmetic that means the same on every target: no
// operation here has undefined behaviour, whatever its operands.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "iridium/device/compiler.h"

namespace iridium {

namespace detail {

// The compiler's own forms of `std::bit_cast` and `std::is_constant_evaluated`: nvcc takes the
// standard ones for host functions.
IR_DEVICE constexpr std::uint32_t float_bits(float value) {
  return __builtin_bit_cast(std::uint32_t, value);
}
IR_DEVICE constexpr float float_of(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

// `condition ? a : b` by bits: gcc would move the arithmetic behind `a` into a branch, and then not
// vectorise loops over the conversions.
IR_DEVICE constexpr std::uint32_t select(bool condition, std::uint32_t a, std::uint32_t b) {
  return b ^ ((a ^ b) & (0u - static_cast<std::uint32_t>(condition)));
}

IR_DEVICE constexpr float widen_fp16(std::uint16_t bits) {
#if IR_ON_CUDA
  if (!__builtin_is_constant_evaluated()) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
#endif
  constexpr std::uint32_t rebias = 112u << 23;
  const std::uint32_t magnitude = bits & 0x7fffu;
  const std::uint32_t shifted = magnitude << 13;
  // A subnormal has no leading one: lend it that of 2^-14, then take 2^-14 away.
  const float smallest_normal = float_of(113u << 23);
  const std::uint32_t subnormal = float_bits(float_of(shifted + (113u << 23)) - smallest_normal);
  const std::uint32_t normal = shifted + rebias + (magnitude >= 0x7c00u ? rebias : 0u);
  return float_of(select(magnitude < 0x0400u, subnormal, normal) | (bits & 0x8000u) << 16);
}

IR_DEVICE constexpr std::uint16_t narrow_fp16(float value) {
#if IR_ON_CUDA
  if (!__builtin_is_constant_evaluated()) {
    std::uint16_t result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(value));
    return result;
  }
#endif
  constexpr std::uint32_t smallest_normal = 113u << 23;  // 2^-14
  constexpr std::uint32_t too_large = 143u << 23;        // 2^16
  constexpr std::uint32_t infinity = 255u << 23;
  const std::uint32_t bits = float_bits(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Beside 0.5 a float's last bit is worth 2^-24, as a subnormal fp16's is: the sum rounds for us.
  const std::uint32_t small = magnitude < smallest_normal ? magnitude : smallest_normal;
  const std::uint32_t subnormal = float_bits(float_of(small) + 0.5f) - float_bits(0.5f);
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  const std::uint32_t finite = select(magnitude < smallest_normal, subnormal, normal);
  const std::uint32_t number =
      select(magnitude < too_large, finite, 0x7c00u) | (bits >> 16 & 0x8000u);
  return static_cast<std::uint16_t>(select(magnitude > infinity, 0x7fffu, number));
}

IR_DEVICE constexpr float widen_bf16(std::uint16_t bits) {
  return float_of(static_cast<std::uint32_t>(bits) << 16);
}

IR_DEVICE constexpr std::uint16_t narrow_bf16(float value) {
#if IR_ON_CUDA
  if (!__builtin_is_constant_evaluated()) {
    std::uint16_t result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(value));
    return result;
  }
#endif
  const std::uint32_t bits = float_bits(value);
  const std::uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  const bool is_nan = (bits & 0x7fffffffu) > (255u << 23);
  return static_cast<std::uint16_t>(select(is_nan, 0x7fff0000u, rounded) >> 16);
}

}  // namespace detail

/// IEEE 754 binary16. From a float it rounds to nearest even, overflows to infinity, and makes
/// every NaN 0x7fff. To a float it is exact.
struct fp16 {
  std::uint16_t bits;

  fp16() = default;
  IR_DEVICE explicit constexpr fp16(float value) : bits(detail::narrow_fp16(value)) {}
  IR_DEVICE explicit constexpr operator float() const { return detail::widen_fp16(bits); }
};

/// bfloat16: the upper half of a float. Converts as `fp16` does.
struct bf16 {
  std::uint16_t bits;

  bf16() = default;
  IR_DEVICE explicit constexpr bf16(float value) : bits(detail::narrow_bf16(value)) {}
  IR_DEVICE explicit constexpr operator float() const { return detail::widen_bf16(bits); }
};

/// The types that compute in float and round each result once.
template <class T>
concept HalfNumber = std::same_as<T, fp16> || std::same_as<T, bf16>;

template <class T>
concept IntegerNumber = std::same_as<T, std::int8_t> || std::same_as<T, std::int32_t> ||
                        std::same_as<T, std::int64_t> || std::same_as<T, std::uint8_t> ||
                        std::same_as<T, std::uint32_t> || std::same_as<T, std::uint64_t>;

/// The types with infinities and NaN.
template <class T>
concept FloatNumber = HalfNumber<T> || std::same_as<T, float> || std::same_as<T, double>;

/// What an array in a kernel may hold.
template <class T>
concept Number = FloatNumber<T> || IntegerNumber<T>;

/// How many elements the widest memory access, 16 bytes, moves.
template <class T>
inline constexpr int vector_elements = static_cast<int>(16 / sizeof(T));

/// The type sums of T are kept in: float for the 16-bit types, otherwise T. Add with `add`, which
/// wraps integers.
template <Number T>
using Accumulator = std::conditional_t<HalfNumber<T>, float, T>;

template <HalfNumber T>
IR_DEVICE constexpr T operator+(T a, T b) {
  return T(static_cast<float>(a) + static_cast<float>(b));
}
template <HalfNumber T>
IR_DEVICE constexpr T operator-(T a, T b) {
  return T(static_cast<float>(a) - static_cast<float>(b));
}
template <HalfNumber T>
IR_DEVICE constexpr T operator*(T a, T b) {
  return T(static_cast<float>(a) * static_cast<float>(b));
}
template <HalfNumber T>
IR_DEVICE constexpr T operator/(T a, T b) {
  return T(static_cast<float>(a) / static_cast<float>(b));
}
template <HalfNumber T>
IR_DEVICE constexpr T operator-(T a) {
  a.bits = static_cast<std::uint16_t>(a.bits ^ 0x8000u);
  return a;
}
template <HalfNumber T>
IR_DEVICE constexpr T& operator+=(T& a, T b) {
  return a = a + b;
}
template <HalfNumber T>
IR_DEVICE constexpr T& operator-=(T& a, T b) {
  return a = a - b;
}
template <HalfNumber T>
IR_DEVICE constexpr T& operator*=(T& a, T b) {
  return a = a * b;
}
template <HalfNumber T>
IR_DEVICE constexpr T& operator/=(T& a, T b) {
  return a = a / b;
}
/// Comparisons are those of the values, not of the bits: -0 equals 0 and NaN equals nothing.
template <HalfNumber T>
IR_DEVICE constexpr bool operator==(T a, T b) {
  return static_cast<float>(a) == static_cast<float>(b);
}
template <HalfNumber T>
IR_DEVICE constexpr bool operator<(T a, T b) {
  return static_cast<float>(a) < static_cast<float>(b);
}
template <HalfNumber T>
IR_DEVICE constexpr bool operator<=(T a, T b) {
  return static_cast<float>(a) <= static_cast<float>(b);
}
template <HalfNumber T>
IR_DEVICE constexpr bool operator>(T a, T b) {
  return b < a;
}
template <HalfNumber T>
IR_DEVICE constexpr bool operator>=(T a, T b) {
  return b <= a;
}

namespace detail {
// Signed overflow is undefined; unsigned arithmetic has the same bits.
template <class T>
struct Wrapping {
  using Type = T;
};
template <IntegerNumber T>
struct Wrapping<T> {
  using Type = std::make_unsigned_t<T>;
};
}  // namespace detail

/// a + b; integers wrap, signed ones too.
template <Number T>
IR_DEVICE constexpr T add(T a, T b) {
  using Wrapping = typename detail::Wrapping<T>::Type;
  return static_cast<T>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
}

/// a - b; integers wrap, signed ones too.
template <Number T>
IR_DEVICE constexpr T subtract(T a, T b) {
  using Wrapping = typename detail::Wrapping<T>::Type;
  return static_cast<T>(static_cast<Wrapping>(a) - static_cast<Wrapping>(b));
}

/// a * b; integers wrap, signed ones too.
template <Number T>
IR_DEVICE constexpr T multiply(T a, T b) {
  using Wrapping = typename detail::Wrapping<T>::Type;
  return static_cast<T>(static_cast<Wrapping>(a) * static_cast<Wrapping>(b));
}

/// The smaller of both; NaN when either is. Of -0 and 0 it may be any.
template <Number T>
IR_DEVICE constexpr T minimum(T a, T b) {
#if IR_ON_CUDA
  if constexpr (std::same_as<T, float>) {
    if (!__builtin_is_constant_evaluated()) {
      float result;
      asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
      return result;
    }
  }
#endif
  const auto x = static_cast<Accumulator<T>>(a);
  const auto y = static_cast<Accumulator<T>>(b);
  return y < x || y != y ? b : a;
}

/// The larger of both; NaN when either is. Of -0 and 0 it may be any.
template <Number T>
IR_DEVICE constexpr T maximum(T a, T b) {
#if IR_ON_CUDA
  if constexpr (std::same_as<T, float>) {
    if (!__builtin_is_constant_evaluated()) {
      float result;
      asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
      return result;
    }
  }
#endif
  const auto x = static_cast<Accumulator<T>>(a);
  const auto y = static_cast<Accumulator<T>>(b);
  return x < y || y != y ? b : a;
}

namespace detail {

// Variables, because nvcc refuses the calls inside a function for the GPU.
template <IntegerNumber T>
inline constexpr T lowest = std::numeric_limits<T>::min();
template <IntegerNumber T>
inline constexpr T highest = std::numeric_limits<T>::max();

// Rounding to odd leaves a mark of what was cut off, so that a second rounding, to fewer bits,
// comes out as if it had been the only one.

IR_DEVICE constexpr float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = nearest;
  if (back == value) return nearest;
  const bool away_from_zero = value < 0 ? back < value : back > value;
  return float_of((float_bits(nearest) - (away_from_zero ? 1u : 0u)) | 1u);
}

template <IntegerNumber T>
IR_DEVICE constexpr float round_to_odd(T value) {
  if constexpr (sizeof(T) == 8) {
    constexpr T cut_off = (T{1} << 11) - 1;
    const bool exact = value / (T{1} << 53) == 0 || (value & cut_off) == 0;
    if (!exact) value = (value & ~cut_off) | (cut_off + 1);
  }
  return round_to_odd(static_cast<double>(value));
}

}  // namespace detail

/// `from` as a To, rounded once to nearest even. To an integer, floats lose their fraction and stop
/// at the limits, NaN gives 0, and integers wrap.
template <Number To, Number From>
IR_DEVICE constexpr To convert(From from) {
  if constexpr (std::same_as<To, From>) {
    return from;
  } else if constexpr (HalfNumber<From>) {
    return convert<To>(static_cast<float>(from));
  } else if constexpr (HalfNumber<To> && !std::same_as<From, float>) {
    return To(detail::round_to_odd(from));
  } else if constexpr (FloatNumber<From> && IntegerNumber<To>) {
    constexpr To half_beyond = detail::highest<To> / 2 + 1;
    constexpr From beyond = 2 * static_cast<From>(half_beyond);
    if (from >= beyond) return detail::highest<To>;
    if (from > static_cast<From>(detail::lowest<To>)) return static_cast<To>(from);
    return from == from ? detail::lowest<To> : To{0};
  } else {
    return static_cast<To>(from);
  }
}

}  // namespace iridium
