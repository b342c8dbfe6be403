// Waits that end, and what happens when they end badly.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iridium/device/lane.h"

namespace iridium {

namespace detail {

/// Whether the team has failed, as this rank's memory says.
template <int Threads>
IR_DEVICE bool has_failed(BlockOf<Threads> block, const Lane& lane) {
  return target::load<Order::relaxed, Scope::system>(block.seat(), &lane.state()->abort) !=
         lane_is_well;
}

/// Kernels of a failed team end after so many polls, not only after the first long check.
inline constexpr std::uint32_t first_check = 8;

/// Calls `arrived` until it returns true; false when the team fails or the timeout expires before.
/// The clock and the abort words are looked at now and then only: a wait that is short costs
/// nothing for being bounded.
template <int Threads, class Arrived>
[[nodiscard]] IR_DEVICE bool poll(BlockOf<Threads> block, const Lane& lane, Arrived arrived) {
  Seat* const seat = block.seat();
  target::point(seat);
  std::uint64_t start = 0;
  for (std::uint32_t polls = 1;; ++polls) {
    if (arrived()) return true;
    target::pause(seat, polls > 1);
    if (polls % target::polls_per_check != 0 && polls != first_check) continue;
    if (has_failed(block, lane)) return false;
    if (polls == first_check) continue;
    const LaneStatus* status = lane.terms().status;
    if (target::load<Order::relaxed, Scope::system>(seat, &status->abort) != 0) return false;
    const std::uint64_t now = target::nanoseconds(seat);
    if (start == 0) start = now;
    if (now - start > lane.terms().timeout_ns) return false;
  }
}

/// Waits for `arrived` to return true, for a second at the most.
template <int Threads, class Arrived>
IR_DEVICE void wait_a_second(BlockOf<Threads> block, Arrived arrived) {
  const std::uint64_t start = block.nanoseconds();
  for (bool again = false; !arrived() && block.nanoseconds() - start < 1'000'000'000; again = true)
    block.pause(again);
}

/// Without native atomics several members may report, and the lowest place wins. Words that were in
/// flight when the first one came have arrived by then.
inline constexpr std::uint64_t settling_nanoseconds = 20'000'000;

/// The fault that the whole team tells of; `abort` says that there is one.
template <int Threads>
IR_DEVICE const FaultRecord& agreed_fault(BlockOf<Threads> block, const Lane& lane) {
  if (!lane.peers().have_native_atomics()) {
    const std::uint64_t most = lane.terms().timeout_ns / 16;
    const std::uint64_t time = most < settling_nanoseconds ? most : settling_nanoseconds;
    const std::uint64_t start = block.nanoseconds();
    while (block.nanoseconds() - start < time) block.pause(true);
  }
  const LaneState* const state = lane.state();
  int place = 0;
  while (place + 1 < lane.peers().size() &&
         target::load<Order::acquire, Scope::system>(block.seat(), &state->raised[place]) == 0)
    ++place;
  return state->faults[place];
}

/// Copies the fault to where this rank's host sees it, once. One thread.
template <int Threads>
IR_DEVICE void tell_host(BlockOf<Threads> block, const Lane& lane) {
  Seat* const seat = block.seat();
  LaneStatus* const status = lane.terms().status;
  if (target::load<Order::acquire, Scope::system>(seat, &lane.state()->abort) != lane_has_fault)
    return;
  if (target::compare_exchange<Order::acq_rel, Scope::system>(seat, &status->fault_taken, 0u, 1u) ==
      0) {
    // In a loop, since this is a part of every kernel that can fail.
    using Word [[gnu::may_alias]] = std::uint32_t;
    const auto* from = reinterpret_cast<const Word*>(&agreed_fault(block, lane));
    auto* to = reinterpret_cast<Word*>(&status->fault);
    IR_ROLLED for (std::size_t i = 0; i < sizeof(FaultRecord) / sizeof(Word); ++i) {
      target::point(seat);
      to[i] = from[i];
    }
    target::store<Order::release, Scope::system>(seat, &status->failed, 1u);
    return;
  }
  // Ended by the block that won, which waits for words in flight at most (`agreed_fault`). When
  // this kernel has ended, the host must find the fault.
  wait_a_second(block, [&] {
    return target::load<Order::relaxed, Scope::system>(seat, &status->failed) != 0;
  });
}

/// Ends the team with this fault on every member, unless another block has ended it with its own.
/// One thread.
template <int Threads>
IR_DEVICE void raise(BlockOf<Threads> block, const Lane& lane, FaultRecord fault) {
  Seat* const seat = block.seat();
  const Peers& peers = lane.peers();
  LaneState* const mine = lane.state();
  fault.reporter = static_cast<std::uint32_t>(peers.rank());
  fault.block = static_cast<std::uint32_t>(block.index());
  fault.operation = lane.terms().operation;
  // One word decides for the whole team, so that all members tell of the same fault; where members
  // cannot update each other's, it decides for this one.
  std::uint32_t* const decider =
      &peers.at(mine, peers.have_native_atomics() ? 0 : peers.rank())->fault_taken;
  if (target::compare_exchange<Order::acq_rel, Scope::system>(seat, decider, 0u, 1u) == 0) {
    IR_ROLLED for (int place = 0; place < peers.size(); ++place) {
      LaneState* const state = peers.at(mine, place);
      state->faults[peers.rank()] = fault;
      target::point(seat);
      target::store<Order::release, Scope::system>(seat, &state->raised[peers.rank()], 1u);
      target::point(seat);
      target::store<Order::release, Scope::system>(seat, &state->abort,
                                                   std::uint32_t{lane_has_fault});
    }
  } else {
    // Ended by the member that won, which writes without waiting for anybody. Should it be killed
    // right there, the host of this rank hears of that by itself.
    wait_a_second(block, [&] { return has_failed(block, lane); });
  }
  tell_host(block, lane);
}

/// Finds out why a wait ended without its flags, and fails the team unless it has failed already.
/// `fault` says what was waited for, and of which kind it is when that is known; `behind(place,
/// seen)` tells whether that member's flag is missing. One thread.
template <int Threads, class Behind>
IR_DEVICE void explain(BlockOf<Threads> block, const Lane& lane, FaultRecord fault, Behind behind) {
  Seat* const seat = block.seat();
  LaneStatus* const status = lane.terms().status;
  if (has_failed(block, lane)) return tell_host(block, lane);
  if (target::load<Order::relaxed, Scope::system>(seat, &status->abort) != 0) {
    if (lane.peers().have_native_atomics())
      target::compare_exchange<Order::acq_rel, Scope::system>(seat, &lane.state()->abort,
                                                              std::uint32_t{lane_is_well},
                                                              std::uint32_t{lane_ended_by_host});
    else  // a fault that a member raises right now is lost: the host knows one already
      target::store<Order::release, Scope::system>(seat, &lane.state()->abort,
                                                   std::uint32_t{lane_ended_by_host});
    return;
  }
  if (fault.kind != FaultKind::none) return raise(block, lane, fault);
  fault.kind = FaultKind::timeout;
  const std::uint64_t left = target::load<Order::relaxed, Scope::system>(seat, &status->left);
  IR_ROLLED for (int place = lane.peers().size() - 1; place >= 0; --place) {
    std::uint32_t seen = 0;
    if (!behind(place, seen)) continue;
    fault.missing |= std::uint64_t{1} << place;
    fault.seen = seen;
  }
  if ((fault.missing & left) != 0) {
    fault.kind = FaultKind::peer_left;
    fault.missing &= left;
  }
  raise(block, lane, fault);
}

/// Whether `seen` has reached `expected`, on a counter that wraps around.
IR_DEVICE inline bool has_reached(std::uint32_t seen, std::uint32_t expected) {
  return static_cast<std::int32_t>(seen - expected) >= 0;
}

/// What a block knows of a call that cannot go on.
struct CallFailure {
  FaultKind kind = FaultKind::none;  ///< none: a wait ended without its flags
  std::uint32_t step = 0;
  std::uint32_t expected = 0;
  std::uint32_t seen = 0;  ///< where the kind is known
  // Where the flags are that were waited for.
  const std::byte* flags = nullptr;  ///< of place 0
  std::size_t stride = 0;            ///< bytes to the next place's
  bool are_packets = false;          ///< tags of packets, to be equal; else counters, to be reached
  int only = -1;                     ///< the one member that was waited for, or -1: all others
};

/// The lane's count of steps, for the records of waits outside of calls.
template <int Threads>
IR_DEVICE std::uint32_t step_of(BlockOf<Threads> block, const Lane& lane) {
  return static_cast<std::uint32_t>(
      target::load<Order::relaxed, Scope::device>(block.seat(), &lane.state()->calls) >> 32);
}

/// `explain` for calls through a lane.
template <int Threads>
IR_COLD IR_DEVICE void explain_call(BlockOf<Threads> block, const Lane& lane, CallFailure failure) {
  FaultRecord fault = {};
  fault.kind = failure.kind;
  // Who finds another call on the lane has not got a step.
  fault.step = failure.kind == FaultKind::lane_busy ? step_of(block, lane) : failure.step;
  fault.expected = failure.expected;
  fault.seen = failure.seen;
  explain(block, lane, fault, [&](int place, std::uint32_t& seen) {
    if (place == lane.peers().rank() || (failure.only != -1 && place != failure.only)) return false;
    const std::byte* const flag = failure.flags + static_cast<std::size_t>(place) * failure.stride;
    if (failure.are_packets) {
      const auto pair =
          target::load_pair(block.seat(), reinterpret_cast<const target::Pair*>(flag));
      seen = static_cast<std::uint32_t>(pair.first >> 32);
      return seen != failure.expected || pair.second >> 32 != failure.expected;
    }
    seen = target::load<Order::acquire, Scope::system>(
        block.seat(), reinterpret_cast<const std::uint32_t*>(flag));
    return !has_reached(seen, failure.expected);
  });
}

}  // namespace detail

}  // namespace iridium
