// One atomic access whose operation, order and scope are chosen at run time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iridium/device/atomic.h"

namespace iridium::test {

enum class AtomicCall {
  load,
  store,
  add,
  subtract,
  bit_and,
  bit_or,
  bit_xor,
  minimum,
  maximum,
  exchange,
  compare_exchange
};

/// An access to a word that holds `before`.
template <class T>
struct AtomicCase {
  AtomicCall call = AtomicCall::load;
  Order order = Order::relaxed;
  Scope scope = Scope::system;
  T before = T();
  T operand = T();   ///< of `compare_exchange`: the desired value
  T expected = T();  ///< of `compare_exchange`
};

template <class T>
inline constexpr bool can_be_loaded = !HalfNumber<T>;

/// Whether there is such an access to a T.
template <class T>
IR_DEVICE constexpr bool exists(AtomicCall call, Order order) {
  if (call == AtomicCall::load)
    return can_be_loaded<T> && (order == Order::relaxed || order == Order::acquire);
  if (call == AtomicCall::store)
    return can_be_loaded<T> && (order == Order::relaxed || order == Order::release);
  return AtomicInteger<T> || call == AtomicCall::add;
}

/// Calls `use` with the tag of this order.
template <class Use>
IR_DEVICE void with_order(Order order, Use use) {
  switch (order) {
    case Order::relaxed:
      return use(OrderTag<Order::relaxed>());
    case Order::acquire:
      return use(OrderTag<Order::acquire>());
    case Order::release:
      return use(OrderTag<Order::release>());
    case Order::acq_rel:
      return use(OrderTag<Order::acq_rel>());
  }
}

/// Calls `use` with the tag of this scope.
template <class Use>
IR_DEVICE void with_scope(Scope scope, Use use) {
  switch (scope) {
    case Scope::block:
      return use(ScopeTag<Scope::block>());
    case Scope::device:
      return use(ScopeTag<Scope::device>());
    case Scope::system:
      return use(ScopeTag<Scope::system>());
  }
}

/// What the access returns; of a store, the operand.
template <class T, int Threads, Order O, Scope S>
IR_DEVICE T access(BlockOf<Threads> block, const AtomicCase<T>& access, T* word, OrderTag<O> order,
                   ScopeTag<S> scope) {
  const T operand = access.operand;
  if constexpr (exists<T>(AtomicCall::load, O))
    if (access.call == AtomicCall::load) return atomic_load(block, word, order, scope);
  if constexpr (exists<T>(AtomicCall::store, O))
    if (access.call == AtomicCall::store) atomic_store(block, word, operand, order, scope);
  if (access.call == AtomicCall::add) return atomic_add(block, word, operand, order, scope);
  if constexpr (AtomicInteger<T>) switch (access.call) {
      case AtomicCall::subtract:
        return atomic_sub(block, word, operand, order, scope);
      case AtomicCall::bit_and:
        return atomic_and(block, word, operand, order, scope);
      case AtomicCall::bit_or:
        return atomic_or(block, word, operand, order, scope);
      case AtomicCall::bit_xor:
        return atomic_xor(block, word, operand, order, scope);
      case AtomicCall::minimum:
        return atomic_min(block, word, operand, order, scope);
      case AtomicCall::maximum:
        return atomic_max(block, word, operand, order, scope);
      case AtomicCall::exchange:
        return atomic_exchange(block, word, operand, order, scope);
      case AtomicCall::compare_exchange:
        return atomic_compare_exchange(block, word, access.expected, operand, order, scope);
      default:
        break;
    }
  return operand;
}

template <class T, int Threads>
IR_DEVICE T access(BlockOf<Threads> block, const AtomicCase<T>& one, T* word) {
  T result = T();
  with_scope(one.scope, [&](auto scope) {
    with_order(one.order, [&](auto order) { result = access(block, one, word, order, scope); });
  });
  return result;
}

}  // namespace iridium::test
