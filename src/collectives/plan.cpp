#include "collectives/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/text.h"

namespace iridium {

Error refusal(const char* operation, const std::string& reason) {
  return {Errc::invalid_argument, fmt::format("{}: {}", operation, reason)};
}

namespace {

void check_address(const char* operation, const char* array, const void* address, std::size_t bytes,
                   std::size_t alignment) {
  if (bytes == 0) return;
  if (address == nullptr)
    throw refusal(operation, fmt::format("{} is a null pointer with {} bytes", array, bytes));
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  if (number % alignment != 0)
    throw refusal(operation, fmt::format("{} is {}, which is no multiple of the {} bytes of an "
                                         "element",
                                         array, address, alignment));
  if (number > std::numeric_limits<std::uintptr_t>::max() - bytes)
    throw refusal(operation,
                  fmt::format("{} at {} has no room for {} bytes", array, address, bytes));
}

void check_overlap(const char* operation, const detail::CollectiveBuffers& buffers,
                   const Extents& extents) {
  const auto in = reinterpret_cast<std::uintptr_t>(buffers.in);
  const auto out = reinterpret_cast<std::uintptr_t>(buffers.out);
  if (extents.in_bytes == 0 || extents.out_bytes == 0) return;
  if (out >= in + extents.in_bytes || in >= out + extents.out_bytes) return;
  const auto distance = static_cast<std::ptrdiff_t>(out - in);
  if (std::ranges::find(extents.in_place, distance) != extents.in_place.end()) return;
  throw refusal(operation, fmt::format("in ({} bytes at {}) and out ({} bytes at {}) overlap{}",
                                       extents.in_bytes, buffers.in, extents.out_bytes, buffers.out,
                                       extents.in_place.empty() ? "" : " but are not the same"));
}

Error no_room(const CollectiveCall& call, const std::string& setting, std::size_t bytes,
              std::size_t needed) {
  return refusal(call.operation, fmt::format("{} is {} bytes; {} needs at least {}", setting, bytes,
                                             call.choice.algorithm, needed));
}

std::string option_of(const CollectiveCall& call, const char* option) {
  return fmt::format("TeamOptions::{} of {}", option, call.team.name());
}

/// a / b, rounded up.
std::size_t divided(std::size_t a, std::size_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace

int useful_blocks(std::size_t bytes, std::string_view algorithm) {
  const std::size_t least = Block::gpu_threads * (algorithm.starts_with("packet") ? 8 : 16);
  return static_cast<int>(std::clamp<std::size_t>((bytes + least - 1) / least, 1, 1024));
}

std::size_t bytes_of(const char* operation, const detail::CollectiveBuffers& buffers, int members) {
  const std::size_t each = size_of(buffers.type) * static_cast<std::size_t>(members);
  // Differences of addresses are signed.
  constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max();
  if (buffers.count > most / each)
    throw refusal(operation, fmt::format("{} elements of {} for {} members are over the limit of "
                                         "{} bytes",
                                         buffers.count, name(buffers.type), members, most));
  return buffers.count * each;
}

void detail::require_elements(const char* operation, const char* array, std::size_t size,
                              std::size_t count, int members) {
  if (size / static_cast<std::size_t>(members) < count)
    throw refusal(operation,
                  fmt::format("{} has {} elements; {}{} are needed", array, size, count,
                              members == 1 ? "" : fmt::format(" for each of {} members", members)));
}

void check_buffers(const char* operation, const Team& team,
                   const detail::CollectiveBuffers& buffers, const Extents& extents) {
  const detail::TeamState& state = *detail::Access::team(team);
  state.core().require_own_process();
  state.require_member(operation);
  const std::size_t alignment = size_of(buffers.type);
  check_address(operation, "in", buffers.in, extents.in_bytes, alignment);
  check_address(operation, "out", buffers.out, extents.out_bytes, alignment);
  state.require_reachable(operation, buffers.in, extents.in_bytes);
  state.require_reachable(operation, buffers.out, extents.out_bytes);
  if (buffers.symmetric) {
    state.require_symmetric(operation, buffers.in, extents.in_bytes);
    state.require_symmetric(operation, buffers.out, extents.out_bytes);
  }
  check_overlap(operation, buffers, extents);
}

Choice plan(const char* operation, const Team& team, bool symmetric, std::size_t bytes,
            const Wish& wish) {
  const detail::TeamState& state = *detail::Access::team(team);
  if (wish.blocks < 0 || wish.blocks > team.max_blocks())
    throw refusal(operation,
                  fmt::format("{} blocks; the team's lane has {}", wish.blocks, team.max_blocks()));
  if (wish.tile != 0 && wish.tile != 1 && wish.tile != 2 && wish.tile != 4)
    throw refusal(operation,
                  fmt::format("a tile of {} vectors per thread; expected 1, 2 or 4", wish.tile));
  Choice choice =
      tuning_table().choose({.operation = wish.tuned_as.empty() ? operation : wish.tuned_as,
                             .symmetric = symmetric,
                             .backend = name(state.core().backend().kind()),
                             .device = state.device(),
                             .members = team.size(),
                             .bytes = bytes,
                             .link = state.link()});
  if (!wish.algorithm.empty()) choice.algorithm = wish.algorithm;
  choice.blocks =
      wish.blocks != 0
          ? wish.blocks
          : std::min({choice.blocks, team.max_blocks(), useful_blocks(bytes, choice.algorithm)});
  if (wish.tile != 0) choice.tile = wish.tile;
  return choice;
}

void throw_undecided(const char* operation) {
  throw refusal(operation, "the tuning table leaves the algorithm at automatic");
}

std::size_t staged_bytes(const CollectiveCall& call) {
  const std::size_t room = detail::Access::team(call.team)->layout().scratch_bytes;
  return call.choice.round_bytes != 0 ? std::min(room, call.choice.round_bytes) : room;
}

Rounds one_round(const CollectiveCall& call, std::size_t total, std::size_t granule) {
  const std::size_t part = divided(total, static_cast<std::size_t>(call.choice.blocks));
  return {total, total, divided(part, granule) * granule, 1};
}

std::size_t packet_words(const CollectiveCall& call) {
  const std::size_t slots = detail::Access::team(call.team)->layout().packet_slots;
  if (slots == 0)
    throw no_room(call, option_of(call, "packet_bytes"), 0,
                  sizeof(Packet) * static_cast<std::size_t>(call.team.size()));
  return std::min<std::size_t>(slots, std::numeric_limits<std::uint32_t>::max() / 2);
}

PacketShare share_packets(const CollectiveCall& call, std::size_t bytes) {
  const std::size_t words = divided(bytes, sizeof(Packet));
  return {static_cast<std::uint32_t>(words),
          static_cast<std::uint32_t>(one_round(call, words, 2).part)};
}

Rounds cut_into_rounds(const CollectiveCall& call, std::size_t total, std::size_t granule,
                       std::size_t bytes_each) {
  const std::size_t room = staged_bytes(call);
  const std::size_t limit = room / bytes_each / granule * granule;
  if (limit == 0) {
    const bool is_the_lanes = room == detail::Access::team(call.team)->layout().scratch_bytes;
    throw no_room(call,
                  is_the_lanes ? option_of(call, "scratch_bytes") : "a round of the tuning table",
                  room, granule * bytes_each);
  }
  // Rounds of about the same size, as few as can be.
  const std::size_t even = divided(total, divided(total, limit));
  const std::size_t chunk = divided(even, granule) * granule;
  const std::size_t count = divided(total, chunk);
  if (count > std::numeric_limits<std::uint32_t>::max() / 2)
    throw refusal(call.operation, fmt::format("{} rounds through the lane; the limit is {}: make "
                                              "TeamOptions::scratch_bytes of {} larger",
                                              count, std::numeric_limits<std::uint32_t>::max() / 2,
                                              call.team.name()));
  return {total, chunk, one_round(call, chunk, granule).part, static_cast<std::uint32_t>(count)};
}

}  // namespace iridium
