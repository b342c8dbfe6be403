// Copies between the members of a team, as stream operations; the functions of the same names for
// kernels are in device/remote_memory.h.
//
// Calls return at once and can be captured. They order nothing between ranks: that the peer's
// memory may be written, or is ready to be read, is for signals and barriers to say. All throw
// `not_a_member` on other ranks, `invalid_argument` for a place that does not exist or a symmetric
// address off the heap, and the reason when the team has failed.
#pragma once

#include <cstddef>

#include "iridium/device/matrix.h"
#include "iridium/errors.h"
#include "iridium/stream.h"
#include "iridium/team.h"

namespace iridium {

namespace detail {
void require_pitch(std::size_t columns, std::size_t pitch_bytes, std::size_t element_bytes);
}

/// Copies `bytes` bytes from `from`, memory of this rank, to where the member at `place` has its
/// counterpart of `to`.
void put(StreamRef& stream, const Team& team, void* to, const void* from, std::size_t bytes,
         int place);

/// Copies `bytes` bytes from where the member at `place` has its counterpart of `from` to `to`,
/// memory of this rank.
void get(StreamRef& stream, const Team& team, void* to, const void* from, std::size_t bytes,
         int place);

/// A matrix whose rows lie `pitch_bytes` bytes apart, as pitched allocations have it. Throws
/// `invalid_argument` for a pitch that is no multiple of the element's size or less than a row.
template <class T>
Matrix<T> matrix_with_pitch(T* data, std::size_t rows, std::size_t columns,
                            std::size_t pitch_bytes) {
  detail::require_pitch(columns, pitch_bytes, sizeof(T));
  return {data, rows, columns, pitch_bytes / sizeof(T)};
}

}  // namespace iridium
