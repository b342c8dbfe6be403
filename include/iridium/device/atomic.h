// Atomic accesses of one thread, to any memory it can address: its own rank's, or a peer's at
// `peers.at(mine, place)`.
//
// Updates return what was there before. Order and scope are arguments: atomic_add(block, counter,
// 1, order::relaxed, scope::device). The defaults are safe between ranks. A type that cannot be
// updated atomically on every target does not compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "iridium/device/block.h"

namespace iridium {

/// Any 4- or 8-byte type.
template <AtomicValue T, int Threads, Order O = Order::acquire, Scope S = Scope::system>
[[nodiscard]] IR_DEVICE T atomic_load(BlockOf<Threads> block, const T* from, OrderTag<O> = {},
                                      ScopeTag<S> = {}) {
  return target::load<O, S>(block.seat(), from);
}
template <AtomicValue T, int Threads, Order O = Order::release, Scope S = Scope::system>
IR_DEVICE void atomic_store(BlockOf<Threads> block, T* to, std::type_identity_t<T> value,
                            OrderTag<O> = {}, ScopeTag<S> = {}) {
  target::store<O, S>(block.seat(), to, value);
}

namespace detail {
/// Adds to one half of a 4-byte word, for targets that cannot add to two bytes.
template <Order O, Scope S, class T>
IR_DEVICE T add_to_half(Seat* seat, T* to, T value) {
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(to) & 2;
  auto* const word = reinterpret_cast<std::uint32_t*>(reinterpret_cast<std::byte*>(to) - offset);
  const auto shift = static_cast<unsigned>(offset) * 8;
  std::uint32_t seen = target::load<Order::relaxed, S>(seat, word);
  for (;;) {
    T before = {};
    before.bits = static_cast<std::uint16_t>(seen >> shift);
    const std::uint32_t half = add(before, value).bits;
    const std::uint32_t desired = (seen & ~(0xffffu << shift)) | half << shift;
    const std::uint32_t found = target::compare_exchange<O, S>(seat, word, seen, desired);
    if (found == seen) return before;
    seen = found;
  }
}
}  // namespace detail

/// Integers of 4 and 8 bytes, which wrap around, and floating-point numbers of 2, 4 and 8. NVIDIA
/// GPUs take fp32's subnormal numbers for zero here.
template <AtomicNumber T, int Threads, Order O = Order::acq_rel, Scope S = Scope::system>
IR_DEVICE T atomic_add(BlockOf<Threads> block, T* to, std::type_identity_t<T> value,
                       OrderTag<O> = {}, ScopeTag<S> = {}) {
  if constexpr (target::can_add<T>)
    return target::update<AtomicOp::add, O, S>(block.seat(), to, value);
  else
    return detail::add_to_half<O, S>(block.seat(), to, value);
}
template <AtomicInteger T, int Threads, Order O = Order::acq_rel, Scope S = Scope::system>
IR_DEVICE T atomic_sub(BlockOf<Threads> block, T* to, std::type_identity_t<T> value,
                       OrderTag<O> = {}, ScopeTag<S> = {}) {
  return target::update<AtomicOp::add, O, S>(block.seat(), to, subtract(T(), value));
}
template <AtomicInteger T, int Threads, Order O = Order::acq_rel, Scope S = Scope::system>
IR_DEVICE T atomic_and(BlockOf<Threads> block, T* to, std::type_identity_t<T> value,
                       OrderTag<O> = {}, ScopeTag<S> = {}) {
  return target::update<AtomicOp::bit_and, O, S>(block.seat(), to, value);
}
template <AtomicInteger T, int Threads, Order O = Order::acq_rel, Scope S = Scope::system>
IR_DEVICE T atomic_or(BlockOf<Threads> block, T* to, std::type_identity_t<T> value,
                      OrderTag<O> = {}, ScopeTag<S> = {}) {
  return target::update<AtomicOp::bit_or, O, S>(block.seat(), to, value);
}
template <AtomicInteger T, int Threads, Order O = Order::acq_rel, Scope S = Scope::system>
IR_DEVICE T atomic_xor(BlockOf<Threads> block, T* to, std::type_identity_t<T> value,
                       OrderTag<O> = {}, ScopeTag<S> = {}) {
  return target::update<AtomicOp::bit_xor, O, S>(block.seat(), to, value);
}
template <AtomicInteger T, int Threads, Order O = Order::acq_rel, Scope S = Scope::system>
IR_DEVICE T atomic_min(BlockOf<Threads> block, T* to, std::type_identity_t<T> value,
                       OrderTag<O> = {}, ScopeTag<S> = {}) {
  return target::update<AtomicOp::minimum, O, S>(block.seat(), to, value);
}
template <AtomicInteger T, int Threads, Order O = Order::acq_rel, Scope S = Scope::system>
IR_DEVICE T atomic_max(BlockOf<Threads> block, T* to, std::type_identity_t<T> value,
                       OrderTag<O> = {}, ScopeTag<S> = {}) {
  return target::update<AtomicOp::maximum, O, S>(block.seat(), to, value);
}
template <AtomicInteger T, int Threads, Order O = Order::acq_rel, Scope S = Scope::system>
IR_DEVICE T atomic_exchange(BlockOf<Threads> block, T* to, std::type_identity_t<T> value,
                            OrderTag<O> = {}, ScopeTag<S> = {}) {
  return target::update<AtomicOp::exchange, O, S>(block.seat(), to, value);
}
/// Writes `desired` if `expected` is there: it was when the result equals `expected`.
template <AtomicInteger T, int Threads, Order O = Order::acq_rel, Scope S = Scope::system>
IR_DEVICE T atomic_compare_exchange(BlockOf<Threads> block, T* to, std::type_identity_t<T> expected,
                                    std::type_identity_t<T> desired, OrderTag<O> = {},
                                    ScopeTag<S> = {}) {
  return target::compare_exchange<O, S>(block.seat(), to, expected, desired);
}

}  // namespace iridium
