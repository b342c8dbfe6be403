#include "runtime/device_fault.h"

#include <fmt/format.h>
#include <string.h>

#include <cstring>

#include "base/host_wait.h"
#include "base/text.h"

namespace iridium {
namespace {

/// How messages call a term; texts are shown as such.
struct TermName {
  const char* name;
  bool is_text = false;
};
constexpr TermName term_names[call_term_count] = {
    {"the operation", true},
    {"the memory", true},
    {"the type", true},
    {"the reduction", true},
    {"the count"},
    {"the root"},
    {"the number of rows"},
    {"the algorithm", true},
    {"the number of blocks"},
    {"the tile"},
    {"the heap offset of in"},
    {"the heap offset of out"},
    {"the pitch of in"},
    {"the pitch of out"},
    {"the lane's step"},
};

std::string value_text(bool is_text, const std::uint64_t* words) {
  if (!is_text) return std::to_string(words[0]);
  char letters[sizeof(CallValue)];
  std::memcpy(letters, words, sizeof letters);
  const std::string text(letters, ::strnlen(letters, sizeof letters));
  return text.empty() ? "none" : text;
}

}  // namespace

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
              fmt::format("{} did not arrive within {} {}: expected {}, found {}{}", who,
                          format_seconds(timeout), where, record.expected, record.seen,
                          advice(call_limit(timeout))),
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
    case FaultKind::no_native_atomics: {
      const std::uint64_t place = record.detail[0] < ranks.size() ? record.detail[0] : 0;
      return {Errc::unsupported,
              fmt::format("an atomic update of rank {}'s memory {}: the link between members has "
                          "no native atomics",
                          ranks[place], where),
              {ranks[reporter]}};
    }
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
    case FaultKind::calls_differ: {
      const std::size_t other = record.seen < ranks.size() ? record.seen : 0;
      if (record.expected >= call_term_count) break;
      const TermName& term = term_names[record.expected];
      return {Errc::mismatch,
              fmt::format("members' calls differ {}: {} is {} on rank {} and {} on rank {}", where,
                          term.name, value_text(term.is_text, record.detail), ranks[reporter],
                          value_text(term.is_text, record.detail + 3), ranks[other]),
              {ranks[reporter], ranks[other]}};
    }
    case FaultKind::parts_differ: {
      const std::size_t other = record.seen < ranks.size() ? record.seen : 0;
      return {Errc::mismatch,
              fmt::format("members' parts differ {}: rank {} expects {} bytes of rank {}, which "
                          "sends {}",
                          where, ranks[reporter], record.detail[0], ranks[other], record.detail[1]),
              {ranks[reporter], ranks[other]}};
    }
    default:
      break;
  }
  return {Errc::protocol,
          fmt::format("a fault record of unknown kind {} {}", static_cast<unsigned>(record.kind),
                      where),
          {}};
}

}  // namespace iridium
