#include "collectives/all_reduce/operation.h"

#include "collectives/collective_case.h"
#include "iridium/all_reduce.h"
#include "runtime/access.h"
#include "runtime/team_state.h"

namespace iridium {
namespace {

const Parameter algorithm_parameter = {"algorithm",
                                       {"automatic", "packet", "packet_two_shot", "one_shot",
                                        "two_shot", "two_shot_push", "ring", "atomic"}};

std::unique_ptr<OperationCase> prepare(Context& context, const Team& team,
                                       const Arguments& arguments) {
  const CollectiveArguments parsed = parse_collective(arguments, memory_or_place);
  const AllReduceOptions options = {
      .op = parsed.op,
      .algorithm = parse_all_reduce_algorithm(text_argument(arguments, algorithm_parameter)),
      .blocks = parsed.blocks,
      .tile = parsed.tile};
  if (options.algorithm == AllReduceAlgorithm::atomic && parsed.op != ReduceOp::sum &&
      parsed.op != ReduceOp::avg)
    throw Error(Errc::unsupported, "atomic knows sum and avg only");
  if (options.algorithm == AllReduceAlgorithm::atomic)
    detail::Access::team(team)->require_native_atomics("all_reduce by atomic");
  const std::size_t count = parsed.count();
  return std::make_unique<CollectiveCase>(
      context, team, parsed,
      Collective{.count = count,
                 .in_count = count,
                 .out_count = count,
                 .reduces = true,
                 .source = [](std::size_t i) { return SourceElement{0, i}; },
                 .launch =
                     [team, options](StreamRef& stream, const detail::CollectiveBuffers& buffers) {
                       detail::all_reduce(stream, team, buffers, options);
                     },
                 .payload = count,
                 .bus_factor = 2.0 * (team.size() - 1) / team.size()});
}

}  // namespace

Operation all_reduce_operation() {
  return {"all_reduce",
          "every member gets the reduction of all members' elements",
          {collective_bytes, dtype_parameter, op_parameter, algorithm_parameter, memory_or_place,
           blocks_wish, tile_wish},
          prepare};
}

}  // namespace iridium
