// The tuning table: which algorithm and grid a call gets. The shipped one has no rows: no operation
// has a choice to make yet.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/text.h"

namespace iridium {

inline constexpr std::string_view shipped_tuning_table = "";

/// Ranks with different tables would choose different algorithms and hang; teams compare this.
inline std::uint64_t tuning_table_hash() {
  return hash_text(shipped_tuning_table);
}

}  // namespace iridium
