#include "collectives/all_to_all/operation.h"

#include <vector>

#include "collectives/collective_case.h"
#include "iridium/all_to_all.h"

namespace iridium {
namespace {

std::unique_ptr<OperationCase> prepare(Context& context, const Team& team,
                                       const Arguments& arguments) {
  const CollectiveArguments parsed = parse_collective(arguments);
  const AllToAllOptions options = {.blocks = parsed.blocks};
  const auto members = static_cast<std::size_t>(team.size());
  const std::size_t count = parsed.count(team.size());
  const std::size_t first = team.is_member() ? static_cast<std::size_t>(team.rank()) * count : 0;
  return std::make_unique<CollectiveCase>(
      context, team, parsed,
      Collective{.count = count,
                 .in_count = members * count,
                 .out_count = members * count,
                 .reduces = false,
                 .source =
                     [count, first](std::size_t i) {
                       return SourceElement{static_cast<int>(i / count), first + i % count};
                     },
                 .launch =
                     [team, options](StreamRef& stream, const detail::CollectiveBuffers& buffers) {
                       detail::all_to_all(stream, team, buffers, options);
                     },
                 .payload = members * count,
                 .bus_factor = 1.0 * (team.size() - 1) / team.size()});
}

/// Sizes from nothing to `largest`, each once in what a member sends and in what it receives: all
/// members have as many elements.
struct UnevenParts {
  std::size_t members;
  std::size_t largest;

  std::size_t count(std::size_t from, std::size_t to) const {
    return members == 1 ? largest : largest * ((from + to) % members) / (members - 1);
  }
  /// What `member` sends, or receives: the same by symmetry.
  std::vector<ExchangePart> list(std::size_t member) const {
    std::vector<ExchangePart> parts;
    std::size_t first = 0;
    for (std::size_t other = 0; other < members; ++other) {
      parts.push_back({first, count(member, other)});
      first += parts.back().count;
    }
    return parts;
  }
};

std::unique_ptr<OperationCase> prepare_parts(Context& context, const Team& team,
                                             const Arguments& arguments) {
  const CollectiveArguments parsed = parse_collective(arguments);
  const AllToAllOptions options = {.blocks = parsed.blocks};
  const std::size_t count = parsed.count(team.size());
  // Parts are half as large as the largest, on average.
  const UnevenParts uneven = {static_cast<std::size_t>(team.size()),
                              team.size() == 1 ? count : 2 * count};
  const std::size_t me = team.is_member() ? static_cast<std::size_t>(team.rank()) : 0;
  const ExchangeParts parts = {uneven.list(me), uneven.list(me), uneven.largest};
  const std::size_t total = parts.sent.back().first + parts.sent.back().count;
  // Where members' inputs have what they send to this one.
  std::vector<std::size_t> firsts;
  for (std::size_t from = 0; from < uneven.members; ++from)
    firsts.push_back(uneven.list(from)[me].first);
  return std::make_unique<CollectiveCase>(
      context, team, parsed,
      Collective{
          .count = uneven.largest,
          .in_count = total,
          .out_count = total,
          .reduces = false,
          .source =
              [received = parts.received, firsts](std::size_t i) {
                std::size_t from = 0;
                while (i >= received[from].first + received[from].count) ++from;
                return SourceElement{static_cast<int>(from),
                                     firsts[from] + i - received[from].first};
              },
          .launch =
              [team, options, parts](StreamRef& stream, const detail::CollectiveBuffers& buffers) {
                detail::all_to_all(stream, team, buffers, parts, options);
              },
          .payload = total,
          .bus_factor = 1.0 * (team.size() - 1) / team.size()});
}

}  // namespace

Operation all_to_all_operation() {
  return {"all_to_all",
          "every member sends every member a part of its elements",
          {collective_bytes, dtype_parameter, memory_parameter, blocks_wish},
          prepare};
}

Operation all_to_all_parts_operation() {
  return {"all_to_all_parts",
          "every member sends every member another number of elements, from none up",
          {collective_bytes, dtype_parameter, blocks_wish},
          prepare_parts};
}

}  // namespace iridium
