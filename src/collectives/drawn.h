// Contents for arrays of any size that nobody has to keep: each element is drawn by its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace iridium {

/// A number without pattern for every element of every member.
inline std::uint64_t drawn_bits(std::uint64_t seed, int place, std::size_t index) {
  std::uint64_t bits = (seed * 64 + static_cast<std::uint64_t>(place)) * 0x9e3779b97f4a7c15u +
                       index * 0xd1342543de82ef95u;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
  return bits ^ bits >> 31;
}

/// work(first, end) on ranges that are all of [0, count) together. Large ones are worked on at the
/// same time, by as many threads as a member has cores when `members` share the machine. `work`
/// does not throw.
void for_each_range(std::size_t count, int members,
                    const std::function<void(std::size_t first, std::size_t end)>& work);

}  // namespace iridium
