// What ranks must agree on before they form a team.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "iridium/types.h"
#include "runtime/payload.h"

namespace iridium {

struct TeamTerms {
  std::string version;
  std::string backend;
  std::string placement;
  std::size_t heap_bytes = 0;
  std::size_t scratch_bytes = 0;
  std::size_t packet_bytes = 0;
  std::uint64_t tuning_table = 0;
  bool checked = false;
  int lanes_at_once = 1;
  bool beside_compute = true;
  bool exclusive = false;
  std::int64_t timeout_ms = 0;
  // Those that may differ.
  std::string device;        ///< the device's name; empty when they differ
  int max_blocks = 0;        ///< the smallest wins
  Link link = Link::shared;  ///< this member's worst one to a member; the worst wins
};

Bytes encode(const TeamTerms& terms);
/// Throws `protocol` on bytes that are no terms.
TeamTerms decode_terms(std::span<const std::byte> bytes);

/// The terms all agree on. Throws `mismatch` naming two ranks and
/// both values; entry i is rank `ranks[i]`'s.
TeamTerms reconcile(const std::vector<int>& ranks, const std::vector<TeamTerms>& terms);

}  // namespace iridium
