// Small copies of the collectives' kernels, each of which can be flawed in one way: what the tests
// must find. They sum elements of four bytes, or hand on those of place 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/shards.h"
#include "device/flawed.h"
#include "iridium/device/block_memory.h"
#include "iridium/device/packet.h"

namespace iridium::test {

struct ControlArrays {
  const std::uint32_t* in;
  std::uint32_t* out;
  std::uint32_t count;
};

/// How a staged sum goes wrong.
enum class StagingFlaw {
  none,
  moving_parts,   ///< a block's part of a shorter round begins elsewhere
  in_packet_area  ///< elements are staged where packets arrive
};

/// Everybody stages its elements and reads everybody's, in rounds. Unless 0, every second element
/// becomes `fixed`.
template <template <int> class Call, StagingFlaw flaw = StagingFlaw::none, std::uint32_t fixed = 0>
struct StagedControl {
  Lane lane;
  ControlArrays arrays;
  Rounds rounds;

  IR_DEVICE void operator()(BlockOf<64> block) const {
    Call<64> call(lane, block);
    if (!call.begin()) return;
    for (std::uint32_t round = 0; round < rounds.count; ++round) {
      const Slice part = flaw == StagingFlaw::moving_parts
                             ? slice_of<std::uint32_t>(block, rounds.size(round))
                             : rounds.slice(block, round);
      auto* const staged = reinterpret_cast<std::uint32_t*>(area(call.parity(round)));
      const std::size_t first = rounds.first(round);
      for_each_element(block, part, [&](std::size_t i) {
        staged[i] = fixed != 0 && i % 2 == 1 ? fixed : arrays.in[first + i];
      });
      if (!call.barrier()) return;
      for_each_element(block, part, [&](std::size_t i) {
        std::uint32_t sum = 0;
        for (int place = 0; place < lane.peers().size(); ++place)
          sum += lane.peers().at(staged, place)[i];
        arrays.out[first + i] = sum;
      });
    }
    call.finish(rounds.count);
  }

 private:
  IR_DEVICE std::byte* area(std::uint32_t parity) const {
    if (flaw != StagingFlaw::in_packet_area) return lane.scratch(parity);
    return reinterpret_cast<std::byte*>(lane.packets(parity, 0));
  }
};

/// Everybody sums some of the elements, others in every call, and reads the others' sums. The next
/// call stages where this one did; unless they lie `apart`, that is also where the sums are.
template <bool apart>
struct TwoShotControl {
  Lane lane;
  ControlArrays arrays;
  Rounds rounds;

  IR_DEVICE void operator()(BlockOf<64> block) const {
    const Peers& peers = lane.peers();
    LaneCall call(lane, block);
    if (!call.begin()) return;
    const auto owner = [&](std::size_t i) {
      return static_cast<int>((i + call.step()) % static_cast<std::size_t>(peers.size()));
    };
    for (std::uint32_t round = 0; round < rounds.count; ++round) {
      const Slice part = rounds.slice(block, round);
      const std::size_t first = rounds.first(round);
      auto* const staged = half(call.parity(round));
      auto* const sums = half(call.parity(round + (apart ? 1 : 0)));
      for_each_element(block, part, [&](std::size_t i) {
        if (owner(i) != peers.rank()) staged[i] = arrays.in[first + i];
      });
      if (!call.barrier()) return;
      for_each_element(block, part, [&](std::size_t i) {
        if (owner(i) != peers.rank()) return;
        std::uint32_t sum = arrays.in[first + i];
        for (int place = 0; place < peers.size(); ++place)
          if (place != peers.rank()) sum += peers.at(staged, place)[i];
        sums[i] = sum;
      });
      if (!call.barrier()) return;
      for_each_element(block, part,
                       [&](std::size_t i) { arrays.out[first + i] = peers.at(sums, owner(i))[i]; });
    }
    call.finish(rounds.count + 1);
  }

 private:
  IR_DEVICE std::uint32_t* half(std::uint32_t parity) const {
    return lane.scratch<std::uint32_t>(parity);
  }
};

/// How a sum goes wrong whose members write and never read.
enum class PushFlaw {
  none,
  sums_at_once,     ///< without a barrier behind what members send
  takes_at_once,    ///< without a barrier behind the sums
  sums_where_sent,  ///< the next call sends to the half that has the sums
};

/// Everybody sends every element to the member that sums it, others in every call; that one writes
/// the sum to everybody, who take it from their own scratch.
template <PushFlaw flaw>
struct PushControl {
  Lane lane;
  ControlArrays arrays;
  Rounds rounds;

  IR_DEVICE void operator()(BlockOf<64> block) const {
    const Peers& peers = lane.peers();
    const int me = peers.rank();
    LaneCall call(lane, block);
    if (!call.begin()) return;
    auto* const slots = lane.scratch<std::uint32_t>(call.parity(0));
    auto* const sums = lane.scratch<std::uint32_t>(call.parity(1));
    const auto slot = [&](int source, std::size_t i) {
      return slots + static_cast<std::size_t>(source) * rounds.chunk + i;
    };
    const auto owner = [&](std::size_t i) {
      return static_cast<int>((i + call.step()) % static_cast<std::size_t>(peers.size()));
    };
    for (std::uint32_t round = 0; round < rounds.count; ++round) {
      const Slice part = rounds.slice(block, round);
      const std::size_t first = rounds.first(round);
      for_each_element(block, part, [&](std::size_t i) {
        *peers.at(slot(me, i), owner(i)) = arrays.in[first + i];
      });
      if (flaw != PushFlaw::sums_at_once && !call.barrier()) return;
      for_each_element(block, part, [&](std::size_t i) {
        if (owner(i) != me) return;
        std::uint32_t sum = 0;
        for (int place = 0; place < peers.size(); ++place) sum += *slot(place, i);
        for (int place = 0; place < peers.size(); ++place) peers.at(sums, place)[i] = sum;
      });
      if (flaw != PushFlaw::takes_at_once && !call.barrier()) return;
      for_each_element(block, part, [&](std::size_t i) { arrays.out[first + i] = sums[i]; });
    }
    call.finish(rounds.count + rounds.count % 2 + (flaw == PushFlaw::sums_where_sent ? 1 : 0));
  }
};

/// Everybody reads everybody's elements where they lie, and unless it `enters`, without asking
/// whether they are there.
template <template <int> class Call, bool enters = true>
struct DirectControl {
  Lane lane;
  ControlArrays arrays;
  Rounds rounds;  ///< one

  IR_DEVICE void operator()(BlockOf<64> block) const {
    Call<64> call(lane, block);
    if (enters ? !call.enter() : !call.begin()) return;
    for_each_element(block, rounds.slice(block, 0), [&](std::size_t i) {
      std::uint32_t sum = 0;
      for (int place = 0; place < lane.peers().size(); ++place)
        sum += lane.peers().at(arrays.in, place)[i];
      arrays.out[i] = sum;
    });
    call.leave();
  }
};

/// How vectors in flight go wrong.
enum class QueueFlaw {
  none,
  no_wait,         ///< a vector is read without waiting for it
  short_wait,      ///< the wait is for all but one vector too many
  place_too_early  ///< a place is asked for again before its vector has been read
};

/// Everybody sums everybody's elements where they lie, in vectors that come through block memory,
/// as `VectorQueue` and `SliceReduction` fetch them. For blocks of several threads, and whole
/// vectors.
template <QueueFlaw flaw>
struct QueueControl {
  static constexpr int depth = 4;
  static constexpr int threads = 64;
  using Block = BlockOf<threads>;

  Lane lane;
  ControlArrays arrays;
  Rounds rounds;  ///< one

  IR_DEVICE void operator()(Block block) const {
    LaneCall call(lane, block);
    if (!call.enter()) return;
    const int size = lane.peers().size();
    const BlockMemory<const std::uint32_t*, max_team_size, struct Sources> sources(block);
    block.template share<max_team_size>(
        size, [&](int place) { sources[place] = lane.peers().at(arrays.in, place); });
    block.sync();

    const Slice part = rounds.slice(block, 0);
    const std::size_t end = part.first + part.count;
    const std::size_t first = part.first + static_cast<std::size_t>(block.thread()) * 4;
    const auto step = static_cast<std::size_t>(block.thread_count()) * 4;
    Queue queue(block);
    int source = 0;
    std::size_t ahead = first;
    const auto push = [&] {
      queue.push(sources[source] + ahead, ahead < end);
      if (++source < size) return;
      source = 0;
      ahead += step;
    };
    for (int i = 0; i < depth; ++i) push();
    for (std::size_t at = first; at < end; at += step) {
      std::uint32_t sums[4] = {};
      for (int place = 0; place < size; ++place) {
        const auto oldest = queue.oldest();
        if (flaw == QueueFlaw::place_too_early) push();
        std::uint32_t part_of[4];
        queue.read(part_of, oldest);
        if (flaw != QueueFlaw::place_too_early) push();
        for (int i = 0; i < 4; ++i) sums[i] += part_of[i];
      }
      for (std::size_t i = 0; i < 4; ++i) arrays.out[at + i] = sums[i];
    }
    call.leave();
  }

 private:
  class Queue {
   public:
    IR_DEVICE explicit Queue(Block block)
        : block_(block),
          vectors_(BlockMemory<Vector, depth * threads, struct Vectors>(block).data()) {}

    IR_DEVICE void push(const std::uint32_t* from, bool wanted) {
      if (wanted) target::fetch_vector(block_.seat(), oldest(), from);
      target::end_fetch(block_.seat());
      next_ = (next_ + 1) % depth;
    }
    IR_DEVICE target::BlockAddress oldest() const {
      return target::block_address(vectors_ + next_ * block_.thread_count() + block_.thread());
    }
    IR_DEVICE void read(std::uint32_t* to, target::BlockAddress from) const {
      constexpr int late = flaw == QueueFlaw::short_wait ? 1 : 0;
      if (flaw != QueueFlaw::no_wait) target::await_fetches<depth - 1 + late>(block_.seat());
      target::read_vector(to, from);
    }

   private:
    struct alignas(16) Vector {
      std::uint32_t words[4];
    };

    Block block_;
    Vector* vectors_;
    int next_ = 0;
  };
};

/// How packets are taken for those of this call.
enum class Acceptance {
  equal,      ///< by their tags
  at_least,   ///< by tags that are not behind this call's, as counters wrap around
  first_half  ///< by the tag of their first half
};

/// Everybody sends everybody its elements, one in both halves of a packet.
template <Acceptance acceptance>
struct PacketControl {
  Lane lane;
  ControlArrays arrays;
  Rounds rounds;  ///< one

  IR_DEVICE void operator()(BlockOf<64> block) const {
    LaneCall call(lane, block);
    if (!call.begin()) return;
    const int size = lane.peers().size();
    const Slice part = rounds.slice(block, 0);
    for_each_element(block, part, [&](std::size_t i) {
      for (int place = 0; place < size; ++place) {
        const std::uint32_t element = arrays.in[i];
        send_packet(call, place, i, {{element, element}});
      }
    });
    bool received = true;
    for_each_element(block, part, [&](std::size_t i) {
      std::uint32_t sum = 0;
      for (int place = 0; place < size; ++place) received = received && add(call, place, i, sum);
      arrays.out[i] = sum;
    });
    if (!block.any(!received)) return call.finish();
    if (block.is_leader()) explain_packet(call, part.first);
  }

 private:
  IR_DEVICE bool add(const LaneCall<64>& call, int place, std::size_t slot,
                     std::uint32_t& sum) const {
    const target::Pair* const from = lane.packets(call.parity(), place) + slot;
    target::Pair pair = {};
    const auto is_accepted = [&](std::uint64_t half) {
      const auto tag = static_cast<std::uint32_t>(half >> 32);
      return acceptance == Acceptance::at_least ? detail::has_reached(tag, call.tag())
                                                : tag == call.tag();
    };
    const bool arrived = detail::poll(call.block(), lane, [&] {
      pair = target::load_pair(call.block().seat(), from);
      return is_accepted(pair.first) &&
             (acceptance == Acceptance::first_half || is_accepted(pair.second));
    });
    sum += static_cast<std::uint32_t>(pair.second);
    return arrived;
  }
};

/// Place 0 sends packets, and unless it `hears`, leaves without a sign of the others.
template <bool hears>
struct BroadcastControl {
  Lane lane;
  ControlArrays arrays;
  Rounds rounds;  ///< one

  IR_DEVICE void operator()(BlockOf<64> block) const {
    LaneCall call(lane, block);
    if (!call.begin()) return;
    const Slice part = rounds.slice(block, 0);
    bool received = true;
    for_each_element(block, part, [&](std::size_t i) {
      Packet packet = {{arrays.in[i], 0}};
      if (lane.peers().rank() == 0)
        for (int place = 1; place < lane.peers().size(); ++place)
          send_packet(call, place, i, packet);
      else
        received = received && receive_packet(call, 0, i, packet);
      arrays.out[i] = packet.data[0];
    });
    if (block.any(!received)) {
      if (block.is_leader()) explain_packet(call, part.first, 0, 0);
      return;
    }
    if (hears)
      call.leave();
    else
      call.finish();
  }
};

}  // namespace iridium::test
