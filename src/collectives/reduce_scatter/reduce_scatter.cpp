#include "iridium/reduce_scatter.h"

#include "base/names.h"
#include "collectives/call_check/launch.h"
#include "collectives/plan.h"
#include "collectives/reduce_scatter/launch.h"
#include "collectives/shard_reduce/launch.h"

namespace iridium {
namespace {

constexpr Names<ReduceScatterAlgorithm, 4> algorithm_names = {
    "reduce_scatter algorithm", {"automatic", "pull", "push", "packet"}};
constexpr auto algorithms = algorithm_names.values();

}  // namespace

std::span<const ReduceScatterAlgorithm> reduce_scatter_algorithms() {
  return algorithms;
}
std::string_view name(ReduceScatterAlgorithm algorithm) {
  return algorithm_names.name(algorithm);
}
ReduceScatterAlgorithm parse_reduce_scatter_algorithm(std::string_view text) {
  return algorithm_names.parse(text);
}

void detail::reduce_scatter(StreamRef& stream, const Team& team, const CollectiveBuffers& buffers,
                            const ReduceScatterOptions& options) {
  constexpr const char* operation = "reduce_scatter";
  const std::size_t bytes = bytes_of(operation, buffers, team.size());
  const std::size_t shard_bytes = bytes_of(operation, buffers);
  Access::team(team)->require_member(operation);
  const auto shard = static_cast<std::ptrdiff_t>(shard_bytes) * team.rank();
  check_buffers(operation, team, buffers, {bytes, shard_bytes, in_place(buffers, {0, shard})});
  const bool is_automatic = options.algorithm == ReduceScatterAlgorithm::automatic;
  const Choice choice = plan(operation, team, buffers.symmetric, bytes,
                             {.algorithm = is_automatic ? "" : name(options.algorithm),
                              .blocks = options.blocks,
                              .tile = options.tile});
  const CollectiveCall call = {stream,      team,          operation,    buffers.in,
                               buffers.out, buffers.count, buffers.type, buffers.symmetric,
                               options.op,  choice};
  compare_calls(call);
  if (buffers.count == 0) return;
  switch (parse_reduce_scatter_algorithm(choice.algorithm)) {
    case ReduceScatterAlgorithm::automatic:
      throw_undecided(operation);
    case ReduceScatterAlgorithm::pull:
      return buffers.symmetric ? launch_direct_shard_reduce(call, ShardUse::keep)
                               : launch_staged_shard_reduce(call, ShardUse::keep);
    case ReduceScatterAlgorithm::push:
      return launch_push_shard_reduce(call, ShardUse::keep);
    case ReduceScatterAlgorithm::packet:
      return launch_packet_reduce_scatter(call);
  }
}

}  // namespace iridium
