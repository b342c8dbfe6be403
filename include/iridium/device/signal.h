// Signals: one rank tells another that its data is there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iridium/device/copy.h"
#include "iridium/device/fault.h"

namespace iridium {

/// When a flag satisfies a wait.
enum class Compare {
  at_least,  ///< by signed distance, so that counters may wrap around
  equal,
};

/// What a signal does to its flag.
enum class SignalOp {
  set,  ///< to the value
  add,  ///< the value: several signallers can share a flag, and a captured signal counts on
};

namespace detail {
template <Order O, Scope S>
IR_DEVICE void write_flag(Seat* seat, std::uint32_t* flag, std::uint32_t value, SignalOp op) {
  if (op == SignalOp::set)
    target::store<O, S>(seat, flag, value);
  else
    target::update<AtomicOp::add, O, S>(seat, flag, value);
}

IR_DEVICE inline bool satisfies(std::uint32_t seen, std::uint32_t value, Compare compare) {
  return compare == Compare::equal ? seen == value : has_reached(seen, value);
}
}  // namespace detail

/// Sets `flag`, usually a peer's, to `value`, or adds it, after everything the block wrote before:
/// whoever sees the value sees that too. Block-collective, and contains the block barrier.
template <int Threads, Order O = Order::release, Scope S = Scope::system>
IR_DEVICE void signal(BlockOf<Threads> block, std::uint32_t* flag, std::uint32_t value,
                      SignalOp op = SignalOp::set, OrderTag<O> = {}, ScopeTag<S> = {}) {
  block.sync();
  target::point(block.seat());
  if (block.is_leader()) detail::write_flag<O, S>(block.seat(), flag, value, op);
}

/// Waits until `flag`, in this rank's memory, satisfies `value`; afterwards the block sees what the
/// signaller wrote before its signal. `from`: the place of the signaller if known, for the error.
/// False when the team of `lane` has failed or the wait has expired, which fails it: return from
/// the kernel. Block-collective.
template <int Threads, Order O = Order::acquire, Scope S = Scope::system>
[[nodiscard]] IR_DEVICE bool wait(BlockOf<Threads> block, const Lane& lane,
                                  const std::uint32_t* flag, std::uint32_t value,
                                  Compare compare = Compare::at_least, int from = -1,
                                  OrderTag<O> = {}, ScopeTag<S> = {}) {
  bool failed = false;
  // Ended by somebody's `signal` on this flag.
  if (block.is_leader())
    failed = !detail::poll(block, lane, [&] {
      return detail::satisfies(target::load<O, S>(block.seat(), flag), value, compare);
    });
  if (!block.any(failed)) return true;
  if (!block.is_leader()) return false;
  FaultRecord fault = {};
  fault.step = detail::step_of(block, lane);
  fault.expected = value;
  fault.seen = target::load<O, S>(block.seat(), flag);
  detail::explain(block, lane, fault, [&](int place, std::uint32_t& seen) {
    seen = fault.seen;
    return place == from;
  });
  return false;
}

/// Signals flag [my place] of every member's `flags`, one flag per member; see `signal`.
template <int Threads, Order O = Order::release, Scope S = Scope::system>
IR_DEVICE void signal_all(BlockOf<Threads> block, const Peers& peers, std::uint32_t* flags,
                          std::uint32_t value, SignalOp op = SignalOp::set, OrderTag<O> = {},
                          ScopeTag<S> = {}) {
  block.sync();
  target::point(block.seat());
  block.template share<max_team_size>(peers.size(), [&](int peer) {
    detail::write_flag<O, S>(block.seat(), peers.at(flags + peers.rank(), peer), value, op);
  });
}

/// Waits until every member's flag in this rank's `flags` satisfies `value`; see `wait`.
template <int Threads, Order O = Order::acquire, Scope S = Scope::system>
[[nodiscard]] IR_DEVICE bool wait_all(BlockOf<Threads> block, const Lane& lane,
                                      const std::uint32_t* flags, std::uint32_t value,
                                      Compare compare = Compare::at_least, OrderTag<O> = {},
                                      ScopeTag<S> = {}) {
  const auto is_there = [&](int peer, std::uint32_t& seen) {
    seen = target::load<O, S>(block.seat(), flags + peer);
    return detail::satisfies(seen, value, compare);
  };
  bool failed = false;
  // Ended by each member's `signal_all`.
  block.template share<max_team_size>(lane.peers().size(), [&](int peer) {
    std::uint32_t seen = 0;
    if (!failed) failed = !detail::poll(block, lane, [&] { return is_there(peer, seen); });
  });
  if (!block.any(failed)) return true;
  if (!block.is_leader()) return false;
  FaultRecord fault = {};
  fault.step = detail::step_of(block, lane);
  fault.expected = value;
  detail::explain(block, lane, fault,
                  [&](int peer, std::uint32_t& seen) { return !is_there(peer, seen); });
  return false;
}

/// Copies `count` elements to `to`, usually a peer's memory, then signals `flag`: the data first.
/// Block-collective; one block does all of it.
template <class T, int Threads>
IR_DEVICE void put_signal(BlockOf<Threads> block, T* to, const T* from, std::size_t count,
                          std::uint32_t* flag, std::uint32_t value, SignalOp op = SignalOp::set) {
  copy(block, to, from, count);
  signal(block, flag, value, op);
}

}  // namespace iridium
