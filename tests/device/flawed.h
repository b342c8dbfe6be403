// Copies of the lane's call and of `signal`, each with one thing left out: what the tests must
// find.
#pragma once

#include <cstdint>

#include "iridium/device/lane_call.h"
#include "iridium/device/signal.h"

namespace iridium::test {

enum class Flaw {
  none,              ///< the copy itself is right
  no_block_barrier,  ///< flags are sent while other threads of the block still store
  no_release,        ///< flags do not carry the stores before them
  no_acquire,        ///< polls do not bring the stores they announce
  device_scope,      ///< flags are for this rank's own blocks
  no_exit_barrier,   ///< a direct form leaves while peers still read
  one_parity,        ///< every call uses the same half of the scratch
  step_per_block,    ///< each block counts its own calls
};

/// `LaneCall`, as short as can be: no faults, no timeouts, and the last block to leave takes the
/// step.
template <Flaw flaw, int Threads>
class FlawedCallOf {
 public:
  IR_DEVICE FlawedCallOf(const Lane& lane, BlockOf<Threads> block) : lane_(lane), block_(block) {}

  [[nodiscard]] IR_DEVICE bool begin() {
    counter_ = static_cast<std::uint32_t>(
        target::load<Order::relaxed, Scope::device>(seat(), &lane_.block(block_.index()).counter));
    std::uint64_t word = 0;
    if (block_.is_leader())
      word = target::update<AtomicOp::add, Order::relaxed, Scope::device>(seat(), calls(),
                                                                          std::uint64_t{1});
    static_cast<void>(block_.any(false, word));
    step_ = flaw == Flaw::step_per_block ? static_cast<std::uint32_t>(word)
                                         : static_cast<std::uint32_t>(word >> 32);
    return true;
  }
  [[nodiscard]] IR_DEVICE bool enter() { return begin() && barrier(); }

  [[nodiscard]] IR_DEVICE bool barrier() {
    const Peers& peers = lane_.peers();
    std::uint32_t* const flags = lane_.block(block_.index()).flags;
    const std::uint32_t expected = ++counter_;
    if (flaw != Flaw::no_block_barrier) block_.sync();
    target::point(seat());
    constexpr Scope scope = flaw == Flaw::device_scope ? Scope::device : Scope::system;
    constexpr Order send = flaw == Flaw::no_release ? Order::relaxed : Order::release;
    constexpr Order receive = flaw == Flaw::no_acquire ? Order::relaxed : Order::acquire;
    for (int peer = block_.thread(); peer < peers.size(); peer += block_.thread_count())
      target::store<send, scope>(seat(), peers.at(flags + peers.rank(), peer), expected);
    for (int peer = block_.thread(); peer < peers.size(); peer += block_.thread_count())
      for (bool again = false;
           !detail::has_reached(target::load<receive, scope>(seat(), flags + peer), expected);
           again = true)
        block_.pause(again);
    block_.sync();
    return true;
  }

  IR_DEVICE void finish(std::uint32_t rounds = 1) {
    if (block_.is_leader())
      target::store<Order::relaxed, Scope::device>(seat(), &lane_.block(block_.index()).counter,
                                                   std::uint64_t{counter_});
    block_.sync();
    if (!block_.is_leader()) return;
    const auto blocks = static_cast<std::uint32_t>(block_.count());
    if (flaw == Flaw::step_per_block) {
      target::update<AtomicOp::add, Order::relaxed, Scope::device>(seat(), calls(),
                                                                   std::uint64_t{rounds - 1});
      return;
    }
    if (static_cast<std::uint32_t>(target::update<AtomicOp::add, Order::acq_rel, Scope::device>(
            seat(), &lane_.state()->leavers, std::uint64_t{1})) +
            1 <
        blocks)
      return;
    target::store<Order::relaxed, Scope::device>(seat(), &lane_.state()->leavers, std::uint64_t{0});
    target::store<Order::relaxed, Scope::device>(seat(), calls(),
                                                 std::uint64_t{step_ + rounds} << 32);
  }

  IR_DEVICE bool leave() {
    if (flaw != Flaw::no_exit_barrier && !barrier()) return false;
    finish();
    return true;
  }

  IR_DEVICE std::uint32_t parity(std::uint32_t round = 0) const {
    return flaw == Flaw::one_parity ? 0 : (step_ + round) & 1;
  }
  IR_DEVICE const Lane& lane() const { return lane_; }

 private:
  IR_DEVICE Seat* seat() const { return block_.seat(); }
  /// With a step per block, each block's counter stands where its flags to itself would.
  IR_DEVICE std::uint64_t* calls() const {
    if (flaw != Flaw::step_per_block) return &lane_.state()->calls;
    return reinterpret_cast<std::uint64_t*>(lane_.packets(0, 0)) + block_.index();
  }

  const Lane& lane_;
  BlockOf<Threads> block_;
  std::uint32_t step_ = 0;
  std::uint32_t counter_ = 0;
};

/// A flawed call as the kernels' template argument.
template <Flaw flaw>
struct Flawed {
  template <int Threads>
  using Call = FlawedCallOf<flaw, Threads>;
};

/// `signal` without the block barrier.
struct EarlySignal {
  template <int Threads>
  IR_DEVICE void operator()(BlockOf<Threads> block, std::uint32_t* flag,
                            std::uint32_t value) const {
    target::point(block.seat());
    if (block.is_leader()) target::store<Order::release, Scope::system>(block.seat(), flag, value);
  }
};

}  // namespace iridium::test
