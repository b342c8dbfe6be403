// Random sequences of calls on one lane.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/calls.h"

namespace iridium::test {

/// Calls drawn from `seed`, the same on every member: any collective, algorithm, type, memory and
/// grid.
std::vector<Call> drawn_calls(int members, std::uint64_t seed, int count);

/// Calls one behind the other, each on arrays of its own.
class Sequence {
 public:
  /// Collective over the world.
  Sequence(Context& context, const Team& team, const std::vector<Call>& calls);

  // As those of a run; `launch` spoils every input right behind its call.
  void set(StreamRef& stream, std::uint64_t seed);
  void launch(StreamRef& stream);
  void fetch(StreamRef& stream);
  /// After a `synchronize`.
  void check();

 private:
  Team team_;
  std::vector<std::unique_ptr<CallRun>> runs_;
};

}  // namespace iridium::test
