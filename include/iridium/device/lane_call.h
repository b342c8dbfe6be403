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
    return begin([] {});
  }
  /// The same. Every thread does `meanwhile()` while the answers are on their way that beginning
  /// needs: what uses no lane, since another call may still be there.
  template <class Meanwhile>
  [[nodiscard]] IR_DEVICE bool begin(Meanwhile meanwhile) {
    bool failed = block_.count() > lane_.max_blocks();
    Entry entry;
    block_.sync();
    block_.await_previous();
    if (!failed && is_clerk()) entry = count_in();
    meanwhile();
    std::uint64_t word = 0;
    if (!failed && is_clerk()) failed = !may_begin(entry, word);
    failed = block_.any(failed, word, block_.clerk());
    step_ = static_cast<std::uint32_t>(word >> 32);
    counter_ = static_cast<std::uint32_t>(word);
    if (!conclude(failed, word == found_busy ? is_busy : 0, lane_.max_blocks(), counter_))
      return false;
    ask_to_leave();
    return true;
  }

  /// Begins, and waits until this block of every member has.
  [[nodiscard]] IR_DEVICE bool enter() {
    std::uint64_t word = 0;
    block_.sync();
    block_.await_previous();
    const bool failed = !arrive(block_entered, lane_.max_blocks(), word);
    if (!agree(failed, word, lane_.max_blocks(), counter_ - 1)) return false;
    ask_to_leave();
    return true;
  }

  /// Waits until this block of every member is here. What any member's block wrote before, this
  /// block sees afterwards.
  [[nodiscard]] IR_DEVICE bool barrier() { return await(arrive()); }

  /// The two halves of a barrier, for work between them: `arrive` tells the members that this block
  /// is here, and returns what `await` needs to wait for theirs.
  IR_DEVICE std::uint32_t arrive() {
    ++counter_;
    block_.sync();
    announce([&](std::uint32_t* flag) {
      target::store<target::told_order, Scope::system>(block_.seat(), flag, counter_);
    });
    return counter_;
  }
  [[nodiscard]] IR_DEVICE bool await(std::uint32_t arrival) {
    const bool failed = block_.any(!have_arrived(arrival));
    return conclude(failed, step_, lane_.max_blocks(), arrival);
  }

  /// A whole call that is nothing but a barrier: `enter` and `finish` in one, for a kernel of one
  /// block that stores nothing before it. Several may follow each other. False when the team has
  /// failed.
  IR_DEVICE bool meet() {
    // The step is taken at once: the block's counter alone tells that a call is here.
    std::uint64_t word = 0;
    // The leader has left the counter of this kernel's last meeting.
    if (has_met_) block_.sync();
    has_met_ = true;
    block_.await_previous();
    const bool failed = !arrive(step_taken, 1, word);
    if (!agree(failed, word, 1, counter_ - 1)) return false;
    if (block_.is_leader()) write_counter();
    return true;
  }

  /// Ends the call. Before this, the block has heard from every member something it sent in this
  /// call. `rounds`: by how many steps the lane goes on, at least as many as the call had rounds;
  /// the same on every block and member.
  IR_DEVICE void finish(std::uint32_t rounds = 1) {
    if (block_.is_leader()) write_counter();
    block_.sync();
    if (is_clerk()) count_out(rounds);
  }

  /// A barrier, and the end of the call: afterwards what members wrote to this rank has arrived,
  /// and what they read of it they have read. False when the barrier failed.
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
  // What a block adds to the lane's {step, blocks inside, blocks entered}.
  static constexpr std::uint64_t block_inside = std::uint64_t{1} << 16;
  static constexpr std::uint64_t block_entered = block_inside + 1;
  static constexpr std::uint64_t step_taken = std::uint64_t{1} << 32;
  // The clerk's word: the step, whether another call is here, and 31 bits of the counter.
  static constexpr std::uint64_t is_busy = std::uint64_t{1} << 32;
  static constexpr int counter_shift = 33;
  // What the clerk of a block that fails in `begin` passes on when another call is here.
  static constexpr std::uint64_t found_busy = ~std::uint64_t{0};

  /// Tells every member that this block has begun, counts it in, and waits for theirs, as far as it
  /// is this thread's to do. False when something failed.
  IR_DEVICE bool arrive(std::uint64_t entry, int limit, std::uint64_t& word) {
    if (block_.count() > limit) return false;
    // By adding, peers can be told before this rank has read its own words.
    const bool adds = lane_.peers().have_native_atomics();
    std::uint32_t before = adds ? 0 : read_counter();
    announce([&](std::uint32_t* flag) {
      if (adds)
        target::update<AtomicOp::add, target::told_order, Scope::system>(block_.seat(), flag, 1u);
      else
        target::store<target::told_order, Scope::system>(block_.seat(), flag, before + 1);
    });
    if (adds) before = read_counter();
    counter_ = before + 1;
    return count_in(entry, before, word) && have_arrived(counter_);
  }

  IR_DEVICE bool is_clerk() const { return block_.thread() == block_.clerk(); }

  /// On the threads that need it.
  IR_DEVICE std::uint32_t read_counter() const {
    if (block_.thread() >= lane_.peers().size() && !is_clerk()) return 0;
    return static_cast<std::uint32_t>(
        // Acquired only so that the first look at the flags comes after it: one taken at once is
        // seldom in time, and the next one has to wait for its answer.
        target::load<Order::acquire, Scope::device>(block_.seat(),
                                                    &lane_.block(block_.index()).counter));
  }

  /// Also tells that no call has this block any more.
  IR_DEVICE void write_counter() const {
    target::store<Order::relaxed, Scope::device>(
        block_.seat(), &lane_.block(block_.index()).counter, std::uint64_t{counter_});
  }

  static IR_DEVICE std::uint32_t blocks_entered(std::uint64_t calls) {
    return static_cast<std::uint16_t>(calls);
  }
  static IR_DEVICE std::uint32_t blocks_inside(std::uint64_t calls) {
    return static_cast<std::uint16_t>(calls >> 16);
  }
  /// By a block that comes in. Of its own call fewer blocks than all have entered, and no more are
  /// inside; blocks of a call that has been closed may still be inside.
  IR_DEVICE bool has_another_call(std::uint64_t calls) const {
    return blocks_entered(calls) >= static_cast<std::uint32_t>(block_.count()) ||
           blocks_inside(calls) > blocks_entered(calls);
  }

  /// The clerk counts the block in and learns the step. False when the team has failed, or when
  /// another call is on the lane or was since the counter was read as `before`.
  IR_DEVICE bool count_in(std::uint64_t entry, std::uint32_t before, std::uint64_t& word) {
    if (!is_clerk()) return true;
    Seat* const seat = block_.seat();
    const auto calls = target::update<AtomicOp::add, Order::relaxed, Scope::device>(
        seat, &lane_.state()->calls, entry);
    const auto counter = target::update<AtomicOp::add, Order::relaxed, Scope::device>(
        seat, &lane_.block(block_.index()).counter, std::uint64_t{1} << 32);
    const bool failed = detail::has_failed(block_, lane_);
    const bool busy = has_another_call(calls) || counter != before;
    word = (calls >> 32) | (busy ? is_busy : 0) | std::uint64_t{before} << counter_shift;
    return !failed && !busy;
  }

  /// What the lane's words were when the clerk counted the block in.
  struct Entry {
    std::uint64_t calls = 0;
    std::uint64_t counter = 0;
    std::uint32_t abort = 0;
  };
  /// By the clerk, at once, without waiting for the counter. Nothing here uses the answers, so that
  /// a GPU does not wait for them.
  IR_DEVICE Entry count_in() const {
    Seat* const seat = block_.seat();
    Entry entry;
    entry.calls = target::update<AtomicOp::add, Order::relaxed, Scope::device>(
        seat, &lane_.state()->calls, block_entered);
    entry.counter = target::update<AtomicOp::add, Order::relaxed, Scope::device>(
        seat, &lane_.block(block_.index()).counter, std::uint64_t{1} << 32);
    entry.abort = target::load<Order::relaxed, Scope::system>(seat, &lane_.state()->abort);
    return entry;
  }
  /// `word` becomes {step, counter}. False when the team has failed or another call is on the lane.
  IR_DEVICE bool may_begin(const Entry& entry, std::uint64_t& word) const {
    const bool busy = has_another_call(entry.calls) || entry.counter >> 32 != 0;
    word = busy ? found_busy : (entry.calls >> 32) << 32 | entry.counter;
    return entry.abort == lane_is_well && !busy;
  }

  /// Tells this block of every other member that this one is here, with all that its threads have
  /// stored before the last `sync`: tell(this rank's flag at the peer), with `told_order`, on the
  /// thread that is there for the peer.
  template <class Tell>
  IR_DEVICE void announce(Tell tell) const {
    const Peers& peers = lane_.peers();
    std::uint32_t* const mine = &lane_.block(block_.index()).flags[peers.rank()];
    target::point(block_.seat());
    block_.template share<max_team_size>(peers.size(), [&](int peer) {
      if (peer == peers.rank()) return;
      target::release_stores(block_.seat(), peers.are_on_one_device());
      tell(peers.at(mine, peer));
    });
  }

  /// Waits for the other members whose flags are this thread's. Ended by their `announce`.
  IR_DEVICE bool have_arrived(std::uint32_t arrival) const {
    bool arrived = true;
    block_.template share<max_team_size>(lane_.peers().size(), [&](int peer) {
      if (!arrived || peer == lane_.peers().rank()) return;
      const std::uint32_t* const flag = &lane_.block(block_.index()).flags[peer];
      arrived = detail::poll(block_, lane_, [&] {
        return detail::has_reached(target::load<Order::acquire, Scope::system>(block_.seat(), flag),
                                   arrival);
      });
    });
    return arrived;
  }

  /// All threads learn the step from the clerk's `word`, and whether one has failed. The leader has
  /// read the counter as `before`.
  IR_DEVICE bool agree(bool failed, std::uint64_t word, int limit, std::uint32_t before) {
    failed = block_.any(failed, word, block_.clerk());
    step_ = static_cast<std::uint32_t>(word);
    if (block_.is_leader()) {
      // Where another call has changed the counter between the clerk's look and the leader's, the
      // leader's flags were not this call's. Only the leader knows, so the block goes on: what it
      // waits for next finds that the team has failed.
      const bool overtaken = word >> counter_shift != (before & 0x7fffffffu);
      if (overtaken) word |= is_busy;
      if (failed || overtaken) report(word, limit, counter_);
    }
    return !failed;
  }

  /// Reports what `failed` means. `expected`: of the flags that were waited for.
  IR_DEVICE bool conclude(bool failed, std::uint64_t word, int limit, std::uint32_t expected) {
    if (failed && block_.is_leader()) report(word, limit, expected);
    return !failed;
  }

  /// By one thread.
  IR_DEVICE void report(std::uint64_t word, int limit, std::uint32_t expected) {
    detail::CallFailure failure;
    failure.step = step_;
    failure.expected = expected;
    failure.flags = reinterpret_cast<const std::byte*>(lane_.block(block_.index()).flags);
    failure.stride = sizeof(std::uint32_t);
    if ((word & is_busy) != 0) failure.kind = FaultKind::lane_busy;
    if (block_.count() > limit) {
      failure.kind = FaultKind::grid_too_large;
      failure.expected = static_cast<std::uint32_t>(limit);
      failure.seen = static_cast<std::uint32_t>(block_.count());
    }
    detail::explain_call(block_, lane_, failure);
  }

  /// By the clerk, long before the block leaves: nothing waits for the answer.
  IR_DEVICE void ask_to_leave() {
    if (!is_clerk() || block_.count() == 1) return;
    leavers_ = target::update<AtomicOp::add, Order::relaxed, Scope::device>(
        block_.seat(), &lane_.state()->leavers, (std::uint64_t{call_id()} << 32) + 1);
  }
  /// Blocks that saw another step belong to another call, also of the same kernel.
  IR_DEVICE std::uint32_t call_id() const { return lane_.terms().call_id + step_ * 0x9e3779b9u; }

  /// Counts the block out. The last one that asked to leave closes the call, also when others are
  /// still inside: it advances the step.
  IR_DEVICE void count_out(std::uint32_t rounds) {
    Seat* const seat = block_.seat();
    LaneState* const state = lane_.state();
    const auto blocks = static_cast<std::uint32_t>(block_.count());
    const std::uint32_t left = static_cast<std::uint32_t>(leavers_) + 1;
    std::uint64_t change = 0 - block_inside;
    if (left >= blocks) {
      change += (std::uint64_t{rounds} << 32) - blocks;
      if (blocks > 1) {
        const std::uint32_t ids = static_cast<std::uint32_t>(leavers_ >> 32) + call_id();
        if (left > blocks || ids != blocks * call_id()) {
          detail::CallFailure failure;
          failure.kind = FaultKind::lane_busy;
          failure.step = step_;
          return detail::explain_call(block_, lane_, failure);
        }
        // Not set to 0: blocks of a call that overlaps would be forgotten.
        target::update<AtomicOp::add, Order::relaxed, Scope::device>(
            seat, &state->leavers, 0 - ((std::uint64_t{ids} << 32) + blocks));
      }
    }
    target::update<AtomicOp::add, Order::relaxed, Scope::device>(seat, &state->calls, change);
  }

  const Lane& lane_;
  BlockOf<Threads> block_;
  std::uint32_t step_ = 0;
  std::uint32_t counter_ = 0;  ///< of the barriers this block has joined; on threads with a peer
  bool has_met_ = false;
  std::uint64_t leavers_ = 0;  ///< of the lane, before this block; on the clerk
};

}  // namespace iridium
