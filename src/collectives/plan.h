// From a collective's arguments to a checked call. Pure but for the tuning table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collectives/call.h"

namespace iridium {

/// What a collective throws for arguments that cannot be.
Error refusal(const char* operation, const std::string& reason);

/// What the caller asked for; empty or 0 where the table decides.
struct Wish {
  std::string_view algorithm = {};
  int blocks = 0;
  int tile = 0;
  std::string_view tuned_as = {};  ///< the operation whose rows decide; empty: its own
};

/// A buffer as the operation reads or writes it.
struct Extents {
  std::size_t in_bytes;
  std::size_t out_bytes;
  /// How many bytes behind `in` a legal `out` that overlaps it begins.
  std::vector<std::ptrdiff_t> in_place;
};

/// Where `out` may overlap `in` as far as no peer touches them.
inline std::vector<std::ptrdiff_t> in_place(const detail::CollectiveBuffers& buffers,
                                            std::vector<std::ptrdiff_t> places) {
  return buffers.symmetric ? std::vector<std::ptrdiff_t>() : std::move(places);
}

/// `count` elements for each of `members`, in bytes. Throws `invalid_argument` when 64 bits do not
/// hold them.
std::size_t bytes_of(const char* operation, const detail::CollectiveBuffers& buffers,
                     int members = 1);

/// Throws `invalid_argument` for buffers that cannot be: null, misaligned, overlapping in a way
/// that is not `in_place`, or symmetric ones that are not.
void check_buffers(const char* operation, const Team& team,
                   const detail::CollectiveBuffers& buffers, const Extents& extents);

/// The choice for a call that moves `bytes` bytes of one member's largest buffer; wishes win over
/// the table. Throws `invalid_argument` for wishes that cannot be.
Choice plan(const char* operation, const Team& team, bool symmetric, std::size_t bytes,
            const Wish& wish);

/// The table says `automatic`.
[[noreturn]] void throw_undecided(const char* operation);

}  // namespace iridium
