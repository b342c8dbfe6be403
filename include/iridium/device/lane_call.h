// One call through a lane: what every collective kernel is made of.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iridium/device/fault.h"

namespace iridium {

/// One kernel's use of a lane, from the first block that begins to the last that ends.
///
///     LaneCall call(lane, block);
///     if (!call.enter()) return;   // every member is here
///     … read and write what members share …
///     call.leave();                // every member's accesses are done
///
/// Its functions are block-collective. Those that wait return false when the team has failed: the
/// kernel then returns, and the next host call on the team throws the reason. Every member runs the
/// same kernel with the same grid, resident, on one stream at a time. A kernel makes one call per
/// lane; within it, blocks with the same index on every member meet at barriers, and at nothing
/// else: a block may read only what the same block wrote on a peer.
template <int Threads>
class LaneCall {
 public:
  IR_DEVICE LaneCall(const Lane& lane, BlockOf<Threads> block) : lane_(lane), block_(block) {}

  /// Begins without waiting for anybody: for kernels that hear from every member later. Ends with
  /// `finish` or `leave`.
  [[nodiscard]] IR_DEVICE bool begin() {
    if (!fits()) return false;
    std::uint64_t word = 0;
    const bool failed = block_.any(count_in(word), word);
    step_ = static_cast<std::uint32_t>(word);
    return !failed;
  }

  /// Begins, and waits until this block of every member has.
  [[nodiscard]] IR_DEVICE bool enter() {
    if (!fits()) return false;
    // Members hear of this block before it has read its own words: their waits are the longer ones.
    arrive();
    std::uint64_t word = 0;
    const bool failed = count_in(word);
    // Every thread has read the counter before the leader writes it.
    block_.sync();
    const bool arrived = await(failed, word);
    step_ = static_cast<std::uint32_t>(word);
    return arrived;
  }

  /// Waits until this block of every member is here. What any member's block wrote before, this
  /// block sees afterwards.
  [[nodiscard]] IR_DEVICE bool barrier() {
    arrive();
    std::uint64_t word = step_;
    return await(false, word);
  }

  /// Ends the call. Before this, the block has heard from every member something it sent in this
  /// call. `rounds`: how many steps the call took; the same on every block and member.
  IR_DEVICE void finish(std::uint32_t rounds = 1) {
    block_.sync();
    if (block_.is_leader()) count_out(rounds);
  }

  /// A barrier, and the end of the call: afterwards what members wrote to this rank has arrived,
  /// and what they read of it they have read. False when the team has failed.
  IR_DEVICE bool leave(std::uint32_t rounds = 1) {
    const bool arrived = barrier();
    if (arrived) finish(rounds);
    return arrived;
  }

  /// The lane's count of steps before this call, the same for all blocks and members.
  IR_DEVICE std::uint32_t step() const { return step_; }
  /// Which half of scratch and packets round `round` of this call uses.
  IR_DEVICE std::uint32_t parity(std::uint32_t round = 0) const { return (step_ + round) & 1; }
  /// The tag of packets of round `round`: never 0, which packets hold before their first use.
  IR_DEVICE std::uint32_t tag(std::uint32_t round = 0) const {
    const std::uint32_t tag = step_ + round;
    // Steps of the other parity only have this value otherwise, and their packets lie elsewhere.
    return tag == 0 ? ~std::uint32_t{0} : tag;
  }

  IR_DEVICE const Lane& lane() const { return lane_; }
  IR_DEVICE BlockOf<Threads> block() const { return block_; }

 private:
  IR_DEVICE bool fits() {
    if (block_.count() <= lane_.max_blocks()) return true;
    FaultRecord fault = {};
    fault.kind = FaultKind::grid_too_large;
    fault.expected = static_cast<std::uint32_t>(lane_.max_blocks());
    fault.seen = static_cast<std::uint32_t>(block_.count());
    if (block_.is_leader()) detail::raise(block_, lane_, fault);
    return false;
  }

  /// Reads the barrier counter; the leader also counts the block in and learns the step. True when
  /// the team has failed.
  IR_DEVICE bool count_in(std::uint64_t& step) {
    Seat* const seat = block_.seat();
    if (block_.thread() < lane_.peers().size())
      counter_ = target::load<Order::relaxed, Scope::device>(seat, lane_.counter(block_.index()));
    if (!block_.is_leader()) return false;
    const auto calls = target::fetch_add<Order::relaxed, Scope::device>(seat, &lane_.state()->calls,
                                                                        std::uint64_t{1});
    const bool failed = detail::has_failed(block_, lane_);
    step = calls >> 32;
    step_ = static_cast<std::uint32_t>(step);
    if (failed) {
      detail::tell_host(block_, lane_);
      return true;
    }
    if (static_cast<std::uint32_t>(calls) < static_cast<std::uint32_t>(block_.count()))
      return false;
    raise_busy();
    return true;
  }

  /// Tells this block of every member that all threads are here, with all they have stored.
  IR_DEVICE void arrive() {
    Seat* const seat = block_.seat();
    const Peers& peers = lane_.peers();
    std::uint32_t* const mine = lane_.flags(block_.index()) + peers.rank();
    block_.sync();
    target::point(seat);
    for (int peer = block_.thread(); peer < peers.size(); peer += block_.thread_count())
      target::fetch_add<Order::release, Scope::system>(seat, peers.at(mine, peer), 1u);
  }

  /// Waits for every member's `arrive`; also hands the leader's `word` and anybody's `failed` to
  /// all threads.
  IR_DEVICE bool await(bool failed, std::uint64_t& word) {
    Seat* const seat = block_.seat();
    const std::uint32_t* const flags = lane_.flags(block_.index());
    const std::uint32_t expected = ++counter_;
    // Not at the end of the call, where the kernel would have to wait for it.
    if (block_.is_leader())
      target::store<Order::relaxed, Scope::device>(seat, lane_.counter(block_.index()), expected);
    for (int peer = block_.thread(); peer < lane_.peers().size() && !failed;
         peer += block_.thread_count())
      failed = detail::poll(block_, lane_, [&] {
                 return detail::has_reached(
                     target::load<Order::acquire, Scope::system>(seat, flags + peer), expected);
               }) != detail::WaitEnd::arrived;
    if (!block_.any(failed, word)) return true;
    if (block_.is_leader()) explain(static_cast<std::uint32_t>(word), expected);
    return false;
  }

  IR_DEVICE void explain(std::uint32_t step, std::uint32_t expected) {
    FaultRecord fault = {};
    fault.step = step;
    fault.expected = expected;
    detail::explain(block_, lane_, fault, [&](int peer, std::uint32_t& seen) {
      seen = target::load<Order::acquire, Scope::system>(block_.seat(),
                                                         lane_.flags(block_.index()) + peer);
      return !detail::has_reached(seen, expected);
    });
  }

  /// Counts the block out; the last one advances the step. Finds calls that overlapped this one.
  IR_DEVICE void count_out(std::uint32_t rounds) {
    Seat* const seat = block_.seat();
    LaneState* const state = lane_.state();
    const auto blocks = static_cast<std::uint32_t>(block_.count());
    if (blocks == 1) {
      // A call that overlaps has found this block counted in, so there is nothing to check.
      target::fetch_add<Order::relaxed, Scope::device>(seat, &state->calls,
                                                       (std::uint64_t{rounds} << 32) - 1);
      return;
    }
    // Blocks that saw another step belong to another call, also of the same kernel.
    const std::uint32_t id = lane_.terms().call_id + step_ * 0x9e3779b9u;
    const auto before = target::fetch_add<Order::acq_rel, Scope::device>(
        seat, &state->leavers, (std::uint64_t{id} << 32) + 1);
    const std::uint32_t left = static_cast<std::uint32_t>(before) + 1;
    if (left < blocks) return;
    const auto calls = target::load<Order::relaxed, Scope::device>(seat, &state->calls);
    const std::uint32_t ids = static_cast<std::uint32_t>(before >> 32) + id;
    if (left > blocks || static_cast<std::uint32_t>(calls) != blocks || ids != blocks * id)
      return raise_busy();
    target::store<Order::relaxed, Scope::device>(seat, &state->leavers, std::uint64_t{0});
    target::store<Order::relaxed, Scope::device>(seat, &state->calls,
                                                 std::uint64_t{step_ + rounds} << 32);
  }

  IR_DEVICE void raise_busy() {
    FaultRecord fault = {};
    fault.kind = FaultKind::lane_busy;
    fault.step = step_;
    detail::raise(block_, lane_, fault);
  }

  const Lane& lane_;
  BlockOf<Threads> block_;
  std::uint32_t step_ = 0;
  std::uint32_t counter_ = 0;  ///< of the barriers this block has joined; on threads with a peer
};

}  // namespace iridium
