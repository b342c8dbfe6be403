// Contents for arrays of any size that nobody has to keep: each element follows from its place.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "iridium/numbers.h"

namespace iridium {

/// A number without pattern for every element of every member.
inline std::uint64_t random_bits(std::uint64_t seed, int place, std::size_t index) {
  std::uint64_t bits = (seed * 64 + static_cast<std::uint64_t>(place)) * 0x9e3779b97f4a7c15u +
                       index * 0xd1342543de82ef95u;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
  return bits ^ bits >> 31;
}

/// The same as an element: any integer, or a number from -1 to 1.
template <Number T>
T random_element(std::uint64_t seed, int place, std::size_t index) {
  const std::uint64_t bits = random_bits(seed, place, index);
  if constexpr (IntegerNumber<T>)
    return static_cast<T>(bits);
  else if constexpr (std::same_as<T, double>)
    return static_cast<double>(bits >> 11) * 0x1p-52 - 1;
  else
    return convert<T>(static_cast<float>(static_cast<std::int32_t>(bits >> 40)) * 0x1p-23f - 1);
}

/// A multiple of 2^-digits from -1 to 1: a type with so many digits holds it as it is.
inline double random_fraction(std::uint64_t seed, int place, std::size_t index, int digits) {
  const auto bits = static_cast<std::int64_t>(random_bits(seed, place, index));
  return static_cast<double>(bits >> (63 - digits)) /
         static_cast<double>(std::int64_t{1} << digits);
}

/// work(first, end) on ranges that are all of [0, count) together. Large ones are worked on at the
/// same time, by as many threads as a member has cores when `members` share the machine. `work`
/// does not throw.
void for_each_range(std::size_t count, int members,
                    const std::function<void(std::size_t first, std::size_t end)>& work);

}  // namespace iridium
