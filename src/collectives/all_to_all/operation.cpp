#include "collectives/all_to_all/operation.h"

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

}  // namespace

Operation all_to_all_operation() {
  return {"all_to_all",
          "every member sends every member a part of its elements",
          {collective_bytes, dtype_parameter, memory_parameter, blocks_wish},
          prepare};
}

}  // namespace iridium
