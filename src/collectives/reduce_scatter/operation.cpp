#include "collectives/reduce_scatter/operation.h"

#include "collectives/collective_case.h"
#include "iridium/reduce_scatter.h"

namespace iridium {
namespace {

const Parameter algorithm_parameter = {"algorithm", {"automatic", "pull", "push", "packet"}};

std::unique_ptr<OperationCase> prepare(Context& context, const Team& team,
                                       const Arguments& arguments) {
  const CollectiveArguments parsed = parse_collective(arguments);
  const ReduceScatterOptions options = {
      .op = parsed.op,
      .algorithm = parse_reduce_scatter_algorithm(text_argument(arguments, algorithm_parameter)),
      .blocks = parsed.blocks,
      .tile = parsed.tile};
  const auto members = static_cast<std::size_t>(team.size());
  const std::size_t count = parsed.count(team.size());
  const std::size_t first = team.is_member() ? static_cast<std::size_t>(team.rank()) * count : 0;
  return std::make_unique<CollectiveCase>(
      context, team, parsed,
      Collective{.count = count,
                 .in_count = members * count,
                 .out_count = count,
                 .reduces = true,
                 .source = [first](std::size_t i) { return SourceElement{0, first + i}; },
                 .launch =
                     [team, options](StreamRef& stream, const detail::CollectiveBuffers& buffers) {
                       detail::reduce_scatter(stream, team, buffers, options);
                     },
                 .payload = members * count,
                 .bus_factor = 1.0 * (team.size() - 1) / team.size()});
}

}  // namespace

Operation reduce_scatter_operation() {
  return {"reduce_scatter",
          "every member gets its shard of the reduction of all members' elements",
          {collective_bytes, dtype_parameter, op_parameter, algorithm_parameter, memory_parameter,
           blocks_wish, tile_wish},
          prepare};
}

}  // namespace iridium
