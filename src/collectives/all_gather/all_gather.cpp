#include "iridium/all_gather.h"

#include "base/names.h"
#include "collectives/all_gather/launch.h"
#include "collectives/call_check/launch.h"
#include "collectives/plan.h"

namespace iridium {
namespace {

constexpr Names<AllGatherAlgorithm, 4> algorithm_names = {"all_gather algorithm",
                                                          {"automatic", "push", "pull", "packet"}};
constexpr auto algorithms = algorithm_names.values();

}  // namespace

std::span<const AllGatherAlgorithm> all_gather_algorithms() {
  return algorithms;
}
std::string_view name(AllGatherAlgorithm algorithm) {
  return algorithm_names.name(algorithm);
}
AllGatherAlgorithm parse_all_gather_algorithm(std::string_view text) {
  return algorithm_names.parse(text);
}

void detail::all_gather(StreamRef& stream, const Team& team, const CollectiveBuffers& buffers,
                        const AllGatherOptions& options) {
  constexpr const char* operation = "all_gather";
  const std::size_t part_bytes = bytes_of(operation, buffers);
  const std::size_t bytes = bytes_of(operation, buffers, team.size());
  Access::team(team)->require_member(operation);
  const auto part = static_cast<std::ptrdiff_t>(part_bytes) * team.rank();
  check_buffers(operation, team, buffers, {part_bytes, bytes, in_place(buffers, {0, -part})});
  const bool is_automatic = options.algorithm == AllGatherAlgorithm::automatic;
  const Choice choice = plan(operation, team, buffers.symmetric, bytes,
                             {.algorithm = is_automatic ? "" : name(options.algorithm),
                              .blocks = options.blocks,
                              .tile = options.tile});
  const CollectiveCall call = {stream,        team,          operation,    buffers.in,
                               buffers.out,   buffers.count, buffers.type, buffers.symmetric,
                               ReduceOp::sum, choice};
  compare_calls(call);
  if (buffers.count == 0) return;
  switch (parse_all_gather_algorithm(choice.algorithm)) {
    case AllGatherAlgorithm::automatic:
      throw_undecided(operation);
    case AllGatherAlgorithm::push:
      return buffers.symmetric ? launch_direct_push_gather(call) : launch_staged_push_gather(call);
    case AllGatherAlgorithm::pull:
      return buffers.symmetric ? launch_direct_pull_gather(call) : launch_staged_pull_gather(call);
    case AllGatherAlgorithm::packet:
      return launch_packet_gather(call);
  }
}

}  // namespace iridium
