// Random sequences of calls on one lane, and what they must produce.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/lane_kernels.h"

namespace iridium::test {

struct PlanLimits {
  int ranks = 2;
  int calls = 10;
  int max_blocks = 8;
  std::uint32_t max_count = 60;      ///< elements per round
  std::vector<CallKind> kinds = {};  ///< default: all
};

/// A sequence of calls, their inputs and their outputs. The calls' areas do not overlap.
class Plan {
 public:
  Plan(const PlanLimits& limits, std::uint64_t seed);

  const std::vector<PlannedCall>& calls() const { return calls_; }
  /// How many elements a rank's data must have.
  std::uint32_t elements() const { return elements_; }
  /// A rank's data before the calls: inputs drawn from `seed`, outputs poisoned.
  std::vector<std::uint32_t> data_before(int place, std::uint64_t seed) const;
  /// Empty when `data`, a rank's after the calls, is right; else the first difference.
  std::string compare(const std::vector<std::uint32_t>& data, std::uint64_t seed) const;

 private:
  std::uint32_t input(std::uint64_t seed, int place, std::uint32_t at) const;
  std::uint32_t expected(std::uint64_t seed, const PlannedCall& call, std::uint32_t i) const;
  std::uint32_t outputs(const PlannedCall& call) const;

  int ranks_;
  std::vector<PlannedCall> calls_;
  std::uint32_t elements_ = 0;
};

}  // namespace iridium::test
