#include "collectives/all_gather/operation.h"

#include "collectives/collective_case.h"
#include "iridium/all_gather.h"

namespace iridium {
namespace {

const Parameter algorithm_parameter = {"algorithm", {"automatic", "push", "pull", "packet"}};

std::unique_ptr<OperationCase> prepare(Context& context, const Team& team,
                                       const Arguments& arguments) {
  const CollectiveArguments parsed = parse_collective(arguments);
  const AllGatherOptions options = {
      .algorithm = parse_all_gather_algorithm(text_argument(arguments, algorithm_parameter)),
      .blocks = parsed.blocks,
      .tile = parsed.tile};
  const auto members = static_cast<std::size_t>(team.size());
  const std::size_t count = parsed.count();
  return std::make_unique<CollectiveCase>(
      context, team, parsed,
      Collective{.count = count,
                 .in_count = count,
                 .out_count = members * count,
                 .reduces = false,
                 .source =
                     [count](std::size_t i) {
                       return SourceElement{static_cast<int>(i / count), i % count};
                     },
                 .launch =
                     [team, options](StreamRef& stream, const detail::CollectiveBuffers& buffers) {
                       detail::all_gather(stream, team, buffers, options);
                     },
                 .payload = members * count,
                 .bus_factor = 1.0 * (team.size() - 1) / team.size()});
}

}  // namespace

Operation all_gather_operation() {
  return {"all_gather",
          "every member gets all members' elements",
          {collective_bytes, dtype_parameter, algorithm_parameter, memory_parameter, blocks_wish,
           tile_wish},
          prepare};
}

}  // namespace iridium
