// Reductions in plain code.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "iridium/numbers.h"

namespace iridium::test {

template <class T>
bool same_bits(const T& a, const T& b) {
  using Bytes = std::array<std::byte, sizeof(T)>;
  return std::bit_cast<Bytes>(a) == std::bit_cast<Bytes>(b);
}

template <FloatNumber T>
bool is_nan(T value) {
  return std::isnan(static_cast<Accumulator<T>>(value));
}

/// What reductions make of every NaN.
template <FloatNumber T>
T one_nan() {
  std::array<std::uint8_t, sizeof(T)> bytes;
  bytes.fill(0xff);
  bytes.back() = 0x7f;
  return std::bit_cast<T>(bytes);
}

/// What floats have beside numbers.
template <FloatNumber T>
std::array<T, 10> special_numbers() {
  using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  const Bits infinity = std::bit_cast<Bits>(convert<T>(std::numeric_limits<double>::infinity()));
  const Bits one = std::bit_cast<Bits>(convert<T>(1.0));
  const auto sign = static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
  const std::array<Bits, 10> bits = {
      0,
      sign,
      1,                                // the smallest subnormal
      static_cast<Bits>(sign | 0x2bu),  // another, negative
      static_cast<Bits>(infinity - 1),  // the largest number
      infinity,
      static_cast<Bits>(infinity | sign),
      static_cast<Bits>(infinity | 0x5u),  // a signalling NaN
      static_cast<Bits>(~Bits{0}),         // a quiet one, negative
      one,
  };
  std::array<T, 10> numbers;
  std::transform(bits.begin(), bits.end(), numbers.begin(),
                 [](Bits each) { return std::bit_cast<T>(each); });
  return numbers;
}

/// Two elements, as an accumulator holds them.
template <class A>
A combined(ReduceOp op, A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    // Signed ones may not overflow, and narrow ones become signed.
    const std::uint64_t x = static_cast<std::make_unsigned_t<A>>(a);
    const std::uint64_t y = static_cast<std::make_unsigned_t<A>>(b);
    if (op == ReduceOp::sum || op == ReduceOp::avg) return static_cast<A>(x + y);
    if (op == ReduceOp::prod) return static_cast<A>(x * y);
  } else {
    if (op == ReduceOp::sum || op == ReduceOp::avg) return a + b;
    if (op == ReduceOp::prod) return a * b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<A>::quiet_NaN();
  }
  return op == ReduceOp::min ? std::min(a, b) : std::max(a, b);
}

/// The members' elements combined from left to right, and stored.
template <class T>
T reduced(ReduceOp op, std::span<const T> elements, std::optional<Accumulator<T>> first = {}) {
  for (const T& each : elements) {
    const auto value = static_cast<Accumulator<T>>(each);
    first = first ? combined(op, *first, value) : value;
  }
  const auto members = static_cast<Accumulator<T>>(elements.size());
  if (op == ReduceOp::avg) {
    if constexpr (FloatNumber<T>)
      *first *= 1 / members;
    else
      *first = static_cast<Accumulator<T>>(*first / members);
  }
  return static_cast<T>(*first);
}

/// Half the distance from 1 to the next number.
template <class T>
constexpr double rounding = std::same_as<T, fp16>    ? 0x1p-11
                            : std::same_as<T, bf16>  ? 0x1p-8
                            : std::same_as<T, float> ? 0x1p-24
                                                     : 0x1p-53;
template <class T>
constexpr double smallest = std::same_as<T, fp16>    ? 0x1p-24
                            : std::same_as<T, bf16>  ? 0x1p-133
                            : std::same_as<T, float> ? 0x1p-149
                                                     : 0x1p-1074;

/// Whether `found` is as near to the reduction in fp64 as n roundings in the accumulator and one
/// to T allow. The reference rounds as well: everything counts twice.
template <FloatNumber T>
bool is_near(ReduceOp op, std::span<const T> elements, T found) {
  const auto wide = [](T each) { return static_cast<double>(static_cast<Accumulator<T>>(each)); };
  double expected = wide(elements[0]);
  double magnitude = std::abs(expected);
  for (const T& each : elements.subspan(1)) {
    expected = combined(op, expected, wide(each));
    magnitude += std::abs(wide(each));
  }
  const auto members = static_cast<double>(elements.size());
  if (op == ReduceOp::avg) expected /= members;
  if (op == ReduceOp::min || op == ReduceOp::max) return wide(found) == expected;
  if (op == ReduceOp::prod) magnitude = std::abs(expected);
  const double steps = (members + 1) * rounding<Accumulator<T>> * magnitude;
  return std::abs(wide(found) - expected) <=
         2 * (steps + rounding<T> * std::abs(expected) + smallest<T>);
}

/// Whether `found` is the reduction that plain code has found.
template <class T>
bool is_same(ReduceOp op, T expected, T found) {
  if constexpr (FloatNumber<T>) {
    // Which of two zeros is the smaller one is nobody's promise.
    if ((op == ReduceOp::min || op == ReduceOp::max) && found == expected) return true;
    if (is_nan(expected)) return same_bits(found, one_nan<T>());
  }
  return same_bits(found, expected);
}

/// Whether `found` is the reduction of elements that are added to 0 in any order.
template <FloatNumber T>
bool is_sum_in_any_order(ReduceOp op, std::span<const T> elements, T found) {
  if (elements.size() > 3) return is_near(op, elements, found);
  std::vector<std::size_t> order(elements.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    std::vector<T> permuted;
    for (const std::size_t place : order) permuted.push_back(elements[place]);
    if (is_same(op, reduced<T>(op, permuted, Accumulator<T>{0}), found)) return true;
  } while (std::ranges::next_permutation(order).found);
  return false;
}

}  // namespace iridium::test
