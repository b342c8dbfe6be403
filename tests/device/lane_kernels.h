// Kernels that use every part of a lane, and plans of random calls of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "iridium/device/lane_call.h"
#include "iridium/device/packet.h"

namespace iridium::test {

/// The part of `count` elements that a block owns, the same on every rank.
struct Part {
  std::uint32_t first;
  std::uint32_t last;
};
template <class AnyBlock>
IR_DEVICE Part part_of(AnyBlock block, std::uint32_t count) {
  const auto index = static_cast<std::uint32_t>(block.index());
  const auto blocks = static_cast<std::uint32_t>(block.count());
  return {count * index / blocks, count * (index + 1) / blocks};
}

/// function(element) for every element of the block's part, spread over its threads.
template <class AnyBlock, class Function>
IR_DEVICE void for_part(AnyBlock block, Part part, Function function) {
  for (std::uint32_t i = part.first + static_cast<std::uint32_t>(block.thread()); i < part.last;
       i += static_cast<std::uint32_t>(block.thread_count()))
    function(i);
}
/// The same, from the other end: each thread gets elements that other threads had.
template <class AnyBlock, class Function>
IR_DEVICE void for_part_reversed(AnyBlock block, Part part, Function function) {
  for_part(block, part, [&](std::uint32_t i) { function(part.first + part.last - 1 - i); });
}

/// What a planned call works on: offsets are in elements of the rank's data.
struct CallArguments {
  std::uint32_t* data;
  std::uint32_t in;
  std::uint32_t out;
  std::uint32_t count;
  std::uint32_t rounds;
  int root;
};

/// The kernels are templates of the call, so that tests can plant flaws in a copy of it.
template <class Call>
IR_DEVICE std::uint32_t* scratch_of(const Call& call, int place, std::uint32_t round) {
  const Lane& lane = call.lane();
  return lane.peers().at(lane.scratch<std::uint32_t>(call.parity(round)), place);
}

/// Staged: each round's inputs go to this rank's scratch, a barrier, every peer's scratch is
/// summed.
template <template <int> class Call>
struct StagedSum {
  Lane lane;
  CallArguments at;

  IR_DEVICE void operator()(BlockOf<64> block) const {
    Call<64> call(lane, block);
    if (!call.begin()) return;
    const Part part = part_of(block, at.count);
    for (std::uint32_t round = 0; round < at.rounds; ++round) {
      const std::uint32_t shift = round * at.count;
      std::uint32_t* const mine = scratch_of(call, lane.peers().rank(), round);
      for_part(block, part, [&](std::uint32_t i) { mine[i] = at.data[at.in + shift + i]; });
      if (!call.barrier()) return;
      for_part_reversed(block, part, [&](std::uint32_t i) {
        std::uint32_t sum = 0;
        for (int peer = 0; peer < lane.peers().size(); ++peer)
          sum += scratch_of(call, peer, round)[i];
        at.data[at.out + shift + i] = sum;
      });
    }
    call.finish(at.rounds);
  }
};

/// The root writes to every peer's scratch; the barrier lets the root hear from everybody.
template <template <int> class Call>
struct StagedBroadcast {
  Lane lane;
  CallArguments at;

  IR_DEVICE void operator()(BlockOf<64> block) const {
    Call<64> call(lane, block);
    if (!call.begin()) return;
    const Part part = part_of(block, at.count);
    if (lane.peers().rank() == at.root)
      for (int peer = 0; peer < lane.peers().size(); ++peer) {
        std::uint32_t* const theirs = scratch_of(call, peer, 0);
        for_part(block, part, [&](std::uint32_t i) { theirs[i] = at.data[at.in + i]; });
      }
    if (!call.barrier()) return;
    const std::uint32_t* const mine = scratch_of(call, lane.peers().rank(), 0);
    for_part_reversed(block, part, [&](std::uint32_t i) { at.data[at.out + i] = mine[i]; });
    call.finish();
  }
};

/// Direct: reads every peer's input where it lies, and then spoils its own, which nobody needs
/// after the exit barrier.
template <template <int> class Call>
struct PullGather {
  Lane lane;
  CallArguments at;

  IR_DEVICE void operator()(BlockOf<64> block) const {
    Call<64> call(lane, block);
    if (!call.enter()) return;
    const Part part = part_of(block, at.count);
    for (int peer = 0; peer < lane.peers().size(); ++peer) {
      const std::uint32_t* const theirs = lane.peers().at(at.data + at.in, peer);
      const std::uint32_t to = at.out + static_cast<std::uint32_t>(peer) * at.count;
      for_part(block, part, [&](std::uint32_t i) { at.data[to + i] = theirs[i]; });
    }
    if (!call.leave()) return;
    for_part_reversed(block, part, [&](std::uint32_t i) { at.data[at.in + i] = 0xdeadbeef; });
  }
};

/// Direct: writes into every peer's output.
template <template <int> class Call>
struct PushGather {
  Lane lane;
  CallArguments at;

  IR_DEVICE void operator()(BlockOf<64> block) const {
    Call<64> call(lane, block);
    if (!call.enter()) return;
    const Part part = part_of(block, at.count);
    const std::uint32_t to = at.out + static_cast<std::uint32_t>(lane.peers().rank()) * at.count;
    for (int i = 0; i < lane.peers().size(); ++i) {
      const int peer = (lane.peers().rank() + i) % lane.peers().size();
      std::uint32_t* const theirs = lane.peers().at(at.data + to, peer);
      for_part(block, part, [&](std::uint32_t e) { theirs[e] = at.data[at.in + e]; });
    }
    call.leave();
  }
};

/// No barrier at all: every element travels in a packet of its own.
struct PacketSum {
  Lane lane;
  CallArguments at;

  IR_DEVICE void operator()(BlockOf<64> block) const {
    LaneCall call(lane, block);
    if (!call.begin()) return;
    const int size = lane.peers().size();
    const Part part = part_of(block, at.count);
    bool failed = false;
    for (std::uint32_t round = 0; round < at.rounds; ++round) {
      const std::uint32_t shift = round * at.count;
      for_part(block, part, [&](std::uint32_t i) {
        const std::uint32_t value = at.data[at.in + shift + i];
        for (int peer = 0; peer < size; ++peer)
          send_packet(call, peer, i, {{value, ~value}}, round);
      });
      for_part_reversed(block, part, [&](std::uint32_t i) {
        std::uint32_t sum = 0;
        for (int source = 0; source < size && !failed; ++source) {
          Packet packet = {};
          failed = !receive_packet(call, source, i, packet, round);
          if (packet.data[0] != ~packet.data[1]) sum += 0x10000;
          sum += packet.data[0];
        }
        at.data[at.out + shift + i] = sum;
      });
      if (block.any(failed)) {
        if (block.is_leader()) explain_packet(call, part.first, round);
        return;
      }
    }
    call.finish(at.rounds);
  }
};

/// `rounds` barriers in a row inside one kernel, with data that changes between them: writes 0,
/// plus the number of stale values seen.
template <template <int> class Call>
struct ManyBarriers {
  Lane lane;
  CallArguments at;

  IR_DEVICE void operator()(BlockOf<64> block) const {
    Call<64> call(lane, block);
    if (!call.enter()) return;
    const int size = lane.peers().size();
    // A cell per block and source, in the output area.
    std::uint32_t* const cells =
        at.data + at.out + at.count + static_cast<std::uint32_t>(block.index() * size);
    std::uint32_t stale = 0;
    for (std::uint32_t round = 1; round <= at.rounds; ++round) {
      for (int peer = block.thread(); peer < size; peer += block.thread_count())
        lane.peers().at(cells + lane.peers().rank(), peer)[0] = round * 1000;
      if (!call.barrier()) return;
      if (block.is_leader())
        for (int source = 0; source < size; ++source) stale += cells[source] != round * 1000;
      if (!call.barrier()) return;
    }
    const Part part = part_of(block, at.count);
    std::uint64_t word = stale;
    if (block.any(false, word)) return;
    for_part(block, part,
             [&](std::uint32_t i) { at.data[at.out + i] = static_cast<std::uint32_t>(word); });
    call.finish();
  }
};

enum class CallKind { staged_sum, broadcast, pull_gather, push_gather, packet_sum, many_barriers };
inline constexpr int call_kinds = 6;

/// One call of a plan: the same on every rank.
struct PlannedCall {
  CallKind kind;
  int blocks;
  std::uint32_t count;
  std::uint32_t rounds;
  int root;
  std::uint32_t in;
  std::uint32_t out;
};

/// Hands the kernel of `call` to `use`.
template <template <int> class Call, class Use>
void with_kernel(const PlannedCall& call, const Lane& lane, std::uint32_t* data, Use use) {
  const CallArguments at = {data, call.in, call.out, call.count, call.rounds, call.root};
  switch (call.kind) {
    case CallKind::staged_sum:
      return use(StagedSum<Call>{lane, at});
    case CallKind::broadcast:
      return use(StagedBroadcast<Call>{lane, at});
    case CallKind::pull_gather:
      return use(PullGather<Call>{lane, at});
    case CallKind::push_gather:
      return use(PushGather<Call>{lane, at});
    case CallKind::packet_sum:
      return use(PacketSum{lane, at});
    case CallKind::many_barriers:
      return use(ManyBarriers<Call>{lane, at});
  }
}

}  // namespace iridium::test
