// What the headers of the collectives share.
#pragma once

#include <cstddef>

#include "iridium/errors.h"
#include "iridium/numbers.h"
#include "iridium/stream.h"
#include "iridium/symmetric_array.h"
#include "iridium/team.h"

namespace iridium::detail {

/// A collective's arrays, their type forgotten.
struct CollectiveBuffers {
  const void* in;
  void* out;
  std::size_t count;  ///< what the operation calls so
  DataType type;
  bool symmetric;  ///< peers may touch them
};

/// Throws `invalid_argument` unless a symmetric array has `count` elements for each of `members`.
void require_elements(const char* operation, const char* array, std::size_t size, std::size_t count,
                      int members = 1);

/// A graph that is being captured keeps what it works on.
template <class T>
void retain_captured(StreamRef& stream, const SymmetricArray<T>& in, const SymmetricArray<T>& out) {
  if (stream.capture_status() != CaptureStatus::active) return;
  in.retain_on(stream);
  out.retain_on(stream);
}

}  // namespace iridium::detail
