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

/// A graph that Iridium captures keeps what it works on.
template <class T>
void retain_captured(StreamRef& stream, const SymmetricArray<T>& in, const SymmetricArray<T>& out) {
  in.retain_in_capture(stream);
  out.retain_in_capture(stream);
}

}  // namespace iridium::detail
