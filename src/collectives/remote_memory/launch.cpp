#include "iridium/remote_memory.h"

#include <fmt/format.h>

#include "runtime/access.h"
#include "runtime/team_state.h"

namespace iridium {
namespace {

/// What put and get ask for: `local` memory of this rank, `symmetric` memory for the member at
/// `place`, whose address is returned.
std::byte* require_copy(const char* operation, const detail::TeamState& team, const void* local,
                        const void* symmetric, std::size_t bytes, int place) {
  team.require_member(operation);
  team.require_place(operation, place);
  team.require_symmetric(operation, symmetric, bytes);
  if (local == nullptr && bytes > 0)
    throw Error(Errc::invalid_argument,
                fmt::format("{}: a null pointer with {} bytes", operation, bytes));
  team.check();
  return team.counterpart(symmetric, place);
}

}  // namespace

void put(StreamRef& stream, const Team& team, void* to, const void* from, std::size_t bytes,
         int place) {
  const auto& state = detail::Access::team(team);
  state->core().adopt(detail::Access::shared(stream));
  stream.copy(require_copy("put", *state, from, to, bytes, place), from, bytes);
}

void get(StreamRef& stream, const Team& team, void* to, const void* from, std::size_t bytes,
         int place) {
  const auto& state = detail::Access::team(team);
  state->core().adopt(detail::Access::shared(stream));
  stream.copy(to, require_copy("get", *state, to, from, bytes, place), bytes);
}

void detail::require_pitch(std::size_t columns, std::size_t pitch_bytes,
                           std::size_t element_bytes) {
  if (pitch_bytes % element_bytes != 0)
    throw Error(Errc::invalid_argument,
                fmt::format("matrix_with_pitch: a pitch of {} bytes is no multiple of the {} bytes "
                            "of an element",
                            pitch_bytes, element_bytes));
  if (pitch_bytes / element_bytes < columns)
    throw Error(Errc::invalid_argument,
                fmt::format("matrix_with_pitch: a pitch of {} bytes is less than {} columns of {} "
                            "bytes",
                            pitch_bytes, columns, element_bytes));
}

}  // namespace iridium
