#include "device/plans.h"

#include <fmt/format.h>

#include <random>

namespace iridium::test {
namespace {

constexpr std::uint32_t poison = 0xbadbad00;

std::uint32_t mix(std::uint64_t value) {
  value = (value ^ (value >> 31)) * 0x9e3779b97f4a7c15u;
  return static_cast<std::uint32_t>(value >> 32);
}

}  // namespace

Plan::Plan(const PlanLimits& limits, std::uint64_t seed) : ranks_(limits.ranks) {
  std::mt19937_64 random(seed);
  const auto draw = [&](std::uint32_t below) {
    return static_cast<std::uint32_t>(random() % below);
  };
  for (int i = 0; i < limits.calls; ++i) {
    PlannedCall call = {};
    call.kind = limits.kinds.empty()
                    ? static_cast<CallKind>(draw(call_kinds))
                    : limits.kinds[draw(static_cast<std::uint32_t>(limits.kinds.size()))];
    call.blocks = 1 + static_cast<int>(draw(static_cast<std::uint32_t>(limits.max_blocks)));
    call.count = 1 + draw(limits.max_count);
    call.rounds = 1 + draw(3);
    call.root = static_cast<int>(draw(static_cast<std::uint32_t>(limits.ranks)));
    call.in = elements_;
    call.out = elements_ + call.count * call.rounds;
    const auto cells = static_cast<std::uint32_t>(call.blocks * limits.ranks);
    elements_ = call.out + outputs(call) + cells;
    calls_.push_back(call);
  }
}

std::uint32_t Plan::outputs(const PlannedCall& call) const {
  switch (call.kind) {
    case CallKind::staged_sum:
    case CallKind::packet_sum:
      return call.count * call.rounds;
    case CallKind::pull_gather:
    case CallKind::push_gather:
      return call.count * static_cast<std::uint32_t>(ranks_);
    default:
      return call.count;
  }
}

std::uint32_t Plan::input(std::uint64_t seed, int place, std::uint32_t at) const {
  return mix(seed * 1'000'003 + static_cast<std::uint64_t>(place) * 65'537 * 4099 + at + 1);
}

std::vector<std::uint32_t> Plan::data_before(int place, std::uint64_t seed) const {
  std::vector<std::uint32_t> data(elements_, poison);
  for (const PlannedCall& call : calls_)
    for (std::uint32_t i = 0; i < call.count * call.rounds; ++i)
      data[call.in + i] = input(seed, place, call.in + i);
  return data;
}

std::uint32_t Plan::expected(std::uint64_t seed, const PlannedCall& call, std::uint32_t i) const {
  std::uint32_t sum = 0;
  switch (call.kind) {
    case CallKind::staged_sum:
    case CallKind::packet_sum:
      for (int place = 0; place < ranks_; ++place) sum += input(seed, place, call.in + i);
      return sum;
    case CallKind::pull_gather:
    case CallKind::push_gather:
      return input(seed, static_cast<int>(i / call.count), call.in + i % call.count);
    case CallKind::broadcast:
      return input(seed, call.root, call.in + i);
    case CallKind::many_barriers:
      return 0;
  }
  return sum;
}

std::string Plan::compare(const std::vector<std::uint32_t>& data, std::uint64_t seed) const {
  for (std::size_t index = 0; index < calls_.size(); ++index) {
    const PlannedCall& call = calls_[index];
    for (std::uint32_t i = 0; i < outputs(call); ++i)
      if (data[call.out + i] != expected(seed, call, i))
        return fmt::format(
            "call {} (kind {}, {} blocks, {} elements, {} rounds): output {} is {:#x}; "
            "expected {:#x}",
            index, static_cast<int>(call.kind), call.blocks, call.count, call.rounds, i,
            data[call.out + i], expected(seed, call, i));
  }
  return {};
}

}  // namespace iridium::test
