#include "iridium/all_to_all.h"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/all_to_all/launch.h"
#include "collectives/call_check/launch.h"
#include "collectives/plan.h"

namespace iridium {
namespace {

constexpr const char* operation = "all_to_all";

CollectiveCall call_of(StreamRef& stream, const Team& team,
                       const detail::CollectiveBuffers& buffers, const AllToAllOptions& options) {
  const std::size_t bytes = bytes_of(operation, buffers, team.size());
  const Choice choice = plan(operation, team, buffers.symmetric, bytes, {.blocks = options.blocks});
  return {stream,        team,         operation,         buffers.in,    buffers.out,
          buffers.count, buffers.type, buffers.symmetric, ReduceOp::sum, choice};
}

/// Throws unless the list fits the team and the largest part; returns how many elements the array
/// must have.
std::size_t check_parts(const char* list, const std::vector<ExchangePart>& parts, const Team& team,
                        const detail::CollectiveBuffers& buffers) {
  if (parts.size() != static_cast<std::size_t>(team.size()))
    throw Error(Errc::invalid_argument,
                fmt::format("{}: {} has {} parts; {} has {} members", operation, list, parts.size(),
                            team.name(), team.size()));
  std::size_t end = 0;
  for (std::size_t place = 0; place < parts.size(); ++place) {
    const ExchangePart& part = parts[place];
    if (part.count > buffers.count)
      throw Error(Errc::invalid_argument,
                  fmt::format("{}: {} for place {} is {} elements; max_count is {}", operation,
                              list, place, part.count, buffers.count));
    if (part.count == 0) continue;
    if (part.first > ~std::size_t{0} / size_of(buffers.type) - part.count)
      throw Error(Errc::invalid_argument,
                  fmt::format("{}: {} for place {} begins at {}, too far for 64 bits", operation,
                              list, place, part.first));
    end = std::max(end, part.first + part.count);
  }
  return end;
}

void check_disjoint(std::vector<ExchangePart> parts) {
  std::erase_if(parts, [](const ExchangePart& part) { return part.count == 0; });
  std::ranges::sort(parts, {}, &ExchangePart::first);
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (parts[i].first < parts[i - 1].first + parts[i - 1].count)
      throw Error(Errc::invalid_argument, fmt::format("{}: received parts overlap at element {}",
                                                      operation, parts[i].first));
}

void check_own_part(const ExchangeParts& parts, const Team& team) {
  const auto me = static_cast<std::size_t>(team.rank());
  if (parts.sent[me].count != parts.received[me].count)
    throw Error(Errc::invalid_argument,
                fmt::format("{}: place {} sends itself {} elements and expects {}", operation, me,
                            parts.sent[me].count, parts.received[me].count));
}

}  // namespace

void detail::all_to_all(StreamRef& stream, const Team& team, const CollectiveBuffers& buffers,
                        const AllToAllOptions& options) {
  const std::size_t bytes = bytes_of(operation, buffers, team.size());
  check_buffers(operation, team, buffers, {bytes, bytes, in_place(buffers, {0})});
  const CollectiveCall call = call_of(stream, team, buffers, options);
  compare_calls(call);
  if (buffers.count == 0) return;
  return buffers.symmetric ? launch_direct_all_to_all(call) : launch_staged_all_to_all(call);
}

void detail::all_to_all(StreamRef& stream, const Team& team, const CollectiveBuffers& buffers,
                        const ExchangeParts& parts, const AllToAllOptions& options) {
  const std::size_t element = size_of(buffers.type);
  const std::size_t sent = check_parts("sent", parts.sent, team, buffers);
  const std::size_t received = check_parts("received", parts.received, team, buffers);
  check_disjoint(parts.received);
  check_buffers(operation, team, buffers, {sent * element, received * element, {}});
  check_own_part(parts, team);
  const CollectiveCall call = call_of(stream, team, buffers, options);
  compare_calls(call, {.parts = &parts});
  if (buffers.count == 0) return;
  launch_staged_all_to_all(call, parts);
}

}  // namespace iridium
