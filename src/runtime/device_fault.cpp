#include "runtime/device_fault.h"

#include <fmt/format.h>
#include <string.h>

#include "base/text.h"

namespace iridium {

Fault describe(const FaultRecord& record, const std::vector<int>& ranks, const std::string& team,
               std::chrono::milliseconds timeout) {
  std::vector<int> missing;
  for (std::size_t place = 0; place < ranks.size(); ++place)
    if ((record.missing >> place & 1) != 0) missing.push_back(ranks[place]);
  const std::size_t reporter = record.reporter < ranks.size() ? record.reporter : 0;
  // Written by a peer: its end is not taken for granted.
  const std::string operation(record.operation.text,
                              ::strnlen(record.operation.text, sizeof record.operation.text));
  const std::string where =
      fmt::format("in {} (block {}, step {} of {}), as rank {} saw it", operation, record.block,
                  record.step, team, ranks[reporter]);
  switch (record.kind) {
    case FaultKind::timeout: {
      const std::string who = missing.empty() ? "a signal" : list_ranks(missing);
      return {Errc::timeout,
              fmt::format("{} did not arrive within {} {}: expected {}, found {}", who,
                          format_seconds(timeout), where, record.expected, record.seen),
              missing};
    }
    case FaultKind::peer_left:
      return {Errc::peer_left,
              fmt::format("{} destroyed the context and did not arrive within {} {}",
                          list_ranks(missing), format_seconds(timeout), where),
              missing};
    case FaultKind::lane_busy:
      return {Errc::lane_busy,
              fmt::format("two operations of {} ran at the same time {}: queue them on one stream, "
                          "or give each a team of its own",
                          team, where),
              {ranks[reporter]}};
    case FaultKind::grid_too_large:
      return {Errc::invalid_argument,
              fmt::format("a kernel with {} blocks {}: the limit is {}", record.seen, where,
                          record.expected),
              {ranks[reporter]}};
    case FaultKind::no_such_place:
      return {Errc::invalid_argument,
              fmt::format("an access to place {} {}: the team has {} members",
                          static_cast<std::int64_t>(record.detail[0]), where, ranks.size()),
              {ranks[reporter]}};
    case FaultKind::outside_segment:
      return {Errc::invalid_argument,
              fmt::format("an access to a peer's counterpart of {} bytes at {:#x} {}: rank {}'s "
                          "segment is {:#x} to {:#x}",
                          record.detail[1], record.detail[0], where, ranks[reporter],
                          record.detail[2], record.detail[2] + record.detail[3]),
              {ranks[reporter]}};
    case FaultKind::outside_matrix:
      return {Errc::invalid_argument,
              fmt::format("a tile at row {}, column {} {}: the matrix has {} rows and {} columns",
                          record.detail[0], record.detail[1], where, record.detail[2],
                          record.detail[3]),
              {ranks[reporter]}};
    case FaultKind::narrow_pitch:
      return {Errc::invalid_argument,
              fmt::format("a matrix with a pitch of {} elements {}: it has {} columns",
                          record.detail[0], where, record.detail[1]),
              {ranks[reporter]}};
    default:
      return {Errc::protocol,
              fmt::format("a fault record of unknown kind {} {}",
                          static_cast<unsigned>(record.kind), where),
              {}};
  }
}

}  // namespace iridium
