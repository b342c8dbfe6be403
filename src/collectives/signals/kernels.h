#pragma once

#include <cstddef>
#include <cstdint>

#include "iridium/device/atomic.h"
#include "iridium/device/signal.h"
#include "runtime/library_kernels.h"

namespace iridium {

using SmallBlock = BlockOf<32>;

struct Signal {
  Peers peers;
  std::uint32_t* flag;  ///< this rank's address
  int place;
  std::uint32_t value;
  SignalOp op;

  IR_DEVICE void operator()(SmallBlock block) const {
    signal(block, peers.at(flag, place), value, op);
  }
};

struct SignalAll {
  Peers peers;
  std::uint32_t* flags;
  std::uint32_t value;
  SignalOp op;

  IR_DEVICE void operator()(SmallBlock block) const { signal_all(block, peers, flags, value, op); }
};

struct Wait {
  Lane lane;
  std::uint32_t* flag;
  std::uint32_t value;
  Compare compare;
  bool consume;
  int from;

  IR_DEVICE void operator()(SmallBlock block) const {
    if (!wait(block, lane, flag, value, compare, from)) return;
    if (consume && block.is_leader()) atomic_add(block, flag, 0u - value, order::relaxed);
  }
};

struct WaitAll {
  Lane lane;
  std::uint32_t* flags;
  std::uint32_t value;
  Compare compare;
  bool consume;

  IR_DEVICE void operator()(SmallBlock block) const {
    if (!wait_all(block, lane, flags, value, compare) || !consume) return;
    for (int peer = block.thread(); peer < lane.peers().size(); peer += block.thread_count())
      atomic_add(block, flags + peer, 0u - value, order::relaxed);
  }
};

struct PutSignal {
  Peers peers;
  std::uint8_t* to;  ///< this rank's address
  const std::uint8_t* from;
  std::size_t bytes;
  int place;
  std::uint32_t* flag;  ///< this rank's address
  std::uint32_t value;
  SignalOp op;

  IR_DEVICE void operator()(Block block) const {
    put_signal(block, peers.at(to, place), from, bytes, peers.at(flag, place), value, op);
  }
};

KernelList signal_kernels();

}  // namespace iridium
