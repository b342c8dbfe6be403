// Random sequences of the collectives' kernels on simulated ranks, and what they must produce.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/simulation.h"

namespace iridium::test {

/// A kernel of the collectives, on elements of four bytes.
enum class Form {
  packet_all_reduce,
  packet_two_shot,
  one_shot,
  two_shot,
  direct_two_shot,
  push_two_shot,
  symmetric_push_two_shot,
  ring,
  atomic,
  packet_reduce_scatter,
  staged_reduce_scatter,
  push_reduce_scatter,
  direct_reduce_scatter,
  packet_gather,
  staged_pull_gather,
  staged_push_gather,
  direct_pull_gather,
  direct_push_gather,
  staged_exchange,
  ragged_exchange,
  direct_exchange,
  packet_broadcast,
  staged_broadcast,
  direct_broadcast,
};
inline constexpr int form_count = 24;

/// One call of a sequence: the same on every rank.
struct SimulatedCall {
  Form form;
  int blocks;
  std::uint32_t count;
  std::uint32_t chunk;  ///< elements of a round; a multiple of 16 bytes
  int root;
  std::uint32_t in;  ///< where in the rank's data
  std::uint32_t out;
  std::uint32_t taken;  ///< where the rank keeps what was there right behind the call
};

/// What member `place` has at `index` of its data.
IR_DEVICE constexpr std::uint32_t drawn_input(std::uint64_t seed, int place, std::uint32_t index) {
  std::uint64_t bits = seed * 1'000'003 + static_cast<std::uint64_t>(place) * 268'640'563 + index;
  bits = (bits ^ (bits >> 31)) * 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 29)) * 0xbf58476d1ce4e5b9u;
  return static_cast<std::uint32_t>(bits >> 32);
}

/// What a rank does on its stream before and behind a call: gives its input elements, and
/// overwrites them as soon as it may.
struct WriteInput {
  std::uint32_t* data;
  std::uint32_t first;
  std::uint32_t count;
  std::uint64_t seed;  ///< 0: overwrite
  int rank;

  IR_DEVICE void operator()(BlockOf<64> block) const {
    target::point(block.seat());
    for (auto i = first + static_cast<std::uint32_t>(block.thread()); i < first + count;
         i += static_cast<std::uint32_t>(block.thread_count()))
      data[i] = seed == 0 ? 0xdeadbeef : drawn_input(seed, rank, i);
  }
};

struct SequenceLimits {
  int ranks = 2;
  int calls = 6;
  int max_blocks = 4;
  std::uint32_t max_count = 60;
  std::vector<Form> forms = {};  ///< default: all
};

/// Calls on one lane, their inputs and their outputs. Areas of calls do not overlap. Every rank
/// writes a call's input right before it, overwrites it right behind it, and takes the output away.
class SimulatedSequence {
 public:
  SimulatedSequence(const SequenceLimits& limits, std::uint64_t seed);

  /// How many elements a rank's data must have.
  std::uint32_t elements() const { return elements_; }
  /// Queues everything; the simulation's data must be `elements()` large.
  void launch(Simulation& simulation) const;
  /// Empty when every rank's outputs are right after the run; else the first difference.
  std::string compare(const Simulation& simulation) const;

 private:
  std::uint32_t expected(const SimulatedCall& call, int place, std::uint32_t i) const;

  int ranks_;
  std::uint64_t seed_;
  std::vector<SimulatedCall> calls_;
  std::uint32_t elements_ = 0;
};

}  // namespace iridium::test
