// What kinds of access there are to memory, beside order and scope: the targets' vocabulary.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "iridium/device/number.h"

namespace iridium {

/// What an atomic update does with the old value and the operand.
enum class AtomicOp { add, bit_and, bit_or, bit_xor, minimum, maximum, exchange };

/// What an update leaves in place of `before`, for targets that have no instruction for it.
template <AtomicOp op, class T>
IR_DEVICE T updated(T before, T value) {
  if constexpr (op == AtomicOp::add)
    return add(before, value);
  else if constexpr (op == AtomicOp::bit_and)
    return before & value;
  else if constexpr (op == AtomicOp::bit_or)
    return before | value;
  else if constexpr (op == AtomicOp::bit_xor)
    return before ^ value;
  else if constexpr (op == AtomicOp::minimum)
    return minimum(before, value);
  else if constexpr (op == AtomicOp::maximum)
    return maximum(before, value);
  else
    return value;
}

/// Integers that can be updated atomically on every target.
template <class T>
concept AtomicInteger = Number<T> && std::integral<T> && (sizeof(T) == 4 || sizeof(T) == 8);
/// Numbers that can be added to atomically on every target.
template <class T>
concept AtomicNumber = AtomicInteger<T> || FloatNumber<T>;
/// What can be loaded and stored atomically on every target.
template <class T>
concept AtomicValue = std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8) &&
                      alignof(T) == sizeof(T);

/// An unsigned integer with the bits of a 4- or 8-byte type.
template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// What an access tells the caches. A hint: results are the same, and a target may ignore it.
enum class Cache {
  normal,
  streaming,  ///< used once: first to be evicted
  shared,     ///< kept where all blocks find it, not in one processor's cache
};

/// A hint as a type: load<4096>(block, from, first, count, everywhere, cache::streaming).
template <Cache cache>
struct CacheTag {};

namespace cache {
inline constexpr CacheTag<Cache::normal> normal;
inline constexpr CacheTag<Cache::streaming> streaming;
inline constexpr CacheTag<Cache::shared> shared;
}  // namespace cache

}  // namespace iridium
