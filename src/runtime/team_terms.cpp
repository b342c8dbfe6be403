#include "runtime/team_terms.h"

#include <fmt/format.h>

#include <algorithm>

#include "iridium/errors.h"

namespace iridium {

Bytes encode(const TeamTerms& terms) {
  return PayloadWriter()
      .text(terms.version)
      .text(terms.backend)
      .text(terms.placement)
      .number(terms.heap_bytes)
      .number(terms.scratch_bytes)
      .number(terms.packet_bytes)
      .number(terms.tuning_table)
      .number(static_cast<std::uint8_t>(terms.checked))
      .number(terms.lanes_at_once)
      .number(static_cast<std::uint8_t>(terms.beside_compute))
      .number(static_cast<std::uint8_t>(terms.exclusive))
      .number(terms.timeout_ms)
      .text(terms.device)
      .number(terms.max_blocks)
      .number(static_cast<std::uint8_t>(terms.link))
      .take();
}

TeamTerms decode_terms(std::span<const std::byte> bytes) {
  PayloadReader reader(bytes);
  TeamTerms terms;
  terms.version = reader.text();
  terms.backend = reader.text();
  terms.placement = reader.text();
  terms.heap_bytes = reader.number<std::size_t>();
  terms.scratch_bytes = reader.number<std::size_t>();
  terms.packet_bytes = reader.number<std::size_t>();
  terms.tuning_table = reader.number<std::uint64_t>();
  terms.checked = reader.number<std::uint8_t>() != 0;
  terms.lanes_at_once = reader.number<int>();
  terms.beside_compute = reader.number<std::uint8_t>() != 0;
  terms.exclusive = reader.number<std::uint8_t>() != 0;
  terms.timeout_ms = reader.number<std::int64_t>();
  terms.device = reader.text();
  terms.max_blocks = reader.number<int>();
  const auto link = reader.number<std::uint8_t>();
  if (link > static_cast<std::uint8_t>(Link::none))
    throw Error(Errc::protocol, fmt::format("there is no link {}", link));
  terms.link = static_cast<Link>(link);
  return terms;
}

TeamTerms reconcile(const std::vector<int>& ranks, const std::vector<TeamTerms>& terms) {
  TeamTerms agreed = terms.front();
  const auto require_equal = [&](const char* what, auto TeamTerms::* field) {
    for (std::size_t i = 1; i < terms.size(); ++i)
      if (terms[i].*field != agreed.*field)
        throw Error(Errc::mismatch,
                    fmt::format("{} differs: rank {} has {}, rank {} has {}", what, ranks.front(),
                                agreed.*field, ranks[i], terms[i].*field),
                    {ranks.front(), ranks[i]});
  };
  require_equal("the library version", &TeamTerms::version);
  require_equal("the backend", &TeamTerms::backend);
  require_equal("the placement", &TeamTerms::placement);
  require_equal("the heap size (bytes)", &TeamTerms::heap_bytes);
  require_equal("the lane's scratch size (bytes)", &TeamTerms::scratch_bytes);
  require_equal("the lane's packet size (bytes)", &TeamTerms::packet_bytes);
  require_equal("the tuning table (hash)", &TeamTerms::tuning_table);
  require_equal("checked mode", &TeamTerms::checked);
  require_equal("the number of lanes at once", &TeamTerms::lanes_at_once);
  require_equal("room for compute (beside_compute)", &TeamTerms::beside_compute);
  require_equal("whether the team is exclusive", &TeamTerms::exclusive);
  require_equal("the timeout (milliseconds)", &TeamTerms::timeout_ms);
  for (const TeamTerms& other : terms) {
    if (other.device != agreed.device) agreed.device.clear();
    agreed.max_blocks = std::min(agreed.max_blocks, other.max_blocks);
    agreed.link = std::max(agreed.link, other.link);
  }
  return agreed;
}

}  // namespace iridium
