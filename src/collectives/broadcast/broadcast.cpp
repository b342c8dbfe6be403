#include "iridium/broadcast.h"

#include "base/names.h"
#include "collectives/broadcast/launch.h"
#include "collectives/call_check/launch.h"
#include "collectives/plan.h"

namespace iridium {
namespace {

constexpr Names<BroadcastAlgorithm, 3> algorithm_names = {"broadcast algorithm",
                                                          {"automatic", "packet", "pull"}};
constexpr auto algorithms = algorithm_names.values();

}  // namespace

std::span<const BroadcastAlgorithm> broadcast_algorithms() {
  return algorithms;
}
std::string_view name(BroadcastAlgorithm algorithm) {
  return algorithm_names.name(algorithm);
}
BroadcastAlgorithm parse_broadcast_algorithm(std::string_view text) {
  return algorithm_names.parse(text);
}

void detail::broadcast(StreamRef& stream, const Team& team, const CollectiveBuffers& buffers,
                       int root, const BroadcastOptions& options) {
  constexpr const char* operation = "broadcast";
  const std::size_t bytes = bytes_of(operation, buffers);
  Access::team(team)->require_member(operation);
  Access::team(team)->require_place(operation, root);
  const bool reads = buffers.symmetric || team.rank() == root;
  check_buffers(operation, team, buffers, {reads ? bytes : 0, bytes, {0}});
  const bool is_automatic = options.algorithm == BroadcastAlgorithm::automatic;
  const Choice choice =
      plan(operation, team, buffers.symmetric, bytes,
           {.algorithm = is_automatic ? "" : name(options.algorithm), .blocks = options.blocks});
  const CollectiveCall call = {stream,        team,          operation,    buffers.in,
                               buffers.out,   buffers.count, buffers.type, buffers.symmetric,
                               ReduceOp::sum, choice};
  compare_calls(call, {.root = root});
  if (buffers.count == 0) return;
  switch (parse_broadcast_algorithm(choice.algorithm)) {
    case BroadcastAlgorithm::automatic:
      throw_undecided(operation);
    case BroadcastAlgorithm::packet:
      return launch_packet_broadcast(call, root);
    case BroadcastAlgorithm::pull:
      return buffers.symmetric ? launch_direct_broadcast(call, root)
                               : launch_staged_broadcast(call, root);
  }
}

}  // namespace iridium
