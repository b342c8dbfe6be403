#include "collectives/broadcast/operation.h"

#include "collectives/collective_case.h"
#include "iridium/broadcast.h"

namespace iridium {
namespace {

const Parameter algorithm_parameter = {"algorithm", {"automatic", "packet", "pull"}};

std::unique_ptr<OperationCase> prepare(Context& context, const Team& team,
                                       const Arguments& arguments) {
  const CollectiveArguments parsed = parse_collective(arguments);
  const BroadcastOptions options = {
      .algorithm = parse_broadcast_algorithm(text_argument(arguments, algorithm_parameter)),
      .blocks = parsed.blocks};
  const std::size_t count = parsed.count();
  const int root = team.size() - 1;
  return std::make_unique<CollectiveCase>(
      context, team, parsed,
      Collective{
          .count = count,
          .in_count = count,
          .out_count = count,
          .reduces = false,
          .source = [root](std::size_t i) { return SourceElement{root, i}; },
          .launch =
              [team, root, options](StreamRef& stream, const detail::CollectiveBuffers& buffers) {
                detail::broadcast(stream, team, buffers, root, options);
              },
          .payload = count,
          .bus_factor = 1});
}

}  // namespace

Operation broadcast_operation() {
  return {"broadcast",
          "every member gets the last one's elements",
          {collective_bytes, dtype_parameter, algorithm_parameter, memory_parameter, blocks_wish},
          prepare};
}

}  // namespace iridium
