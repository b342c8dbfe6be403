#include "iridium/all_reduce.h"

#include <fmt/format.h>

#include "base/names.h"
#include "collectives/all_reduce/launch.h"
#include "collectives/call_check/launch.h"
#include "collectives/plan.h"
#include "collectives/shard_reduce/launch.h"

namespace iridium {
namespace {

constexpr Names<AllReduceAlgorithm, 8> algorithm_names = {
    "all_reduce algorithm",
    {"automatic", "packet", "packet_two_shot", "one_shot", "two_shot", "two_shot_push", "ring",
     "atomic"}};
constexpr auto algorithms = algorithm_names.values();

void check_algorithm(const Team& team, AllReduceAlgorithm algorithm, ReduceOp op) {
  if (algorithm == AllReduceAlgorithm::atomic && op != ReduceOp::sum && op != ReduceOp::avg)
    throw Error(Errc::invalid_argument,
                fmt::format("all_reduce: atomic knows sum and avg, not {}", name(op)));
  if (algorithm == AllReduceAlgorithm::atomic)
    detail::Access::team(team)->require_native_atomics("all_reduce by atomic");
}

}  // namespace

std::span<const AllReduceAlgorithm> all_reduce_algorithms() {
  return algorithms;
}
std::string_view name(AllReduceAlgorithm algorithm) {
  return algorithm_names.name(algorithm);
}
AllReduceAlgorithm parse_all_reduce_algorithm(std::string_view text) {
  return algorithm_names.parse(text);
}

void detail::all_reduce(StreamRef& stream, const Team& team, const CollectiveBuffers& buffers,
                        const AllReduceOptions& options) {
  constexpr const char* operation = "all_reduce";
  const std::size_t bytes = bytes_of(operation, buffers);
  check_buffers(operation, team, buffers, {bytes, bytes, {0}});
  const bool is_automatic = options.algorithm == AllReduceAlgorithm::automatic;
  const Choice choice = plan(operation, team, buffers.symmetric, bytes,
                             {.algorithm = is_automatic ? "" : name(options.algorithm),
                              .blocks = options.blocks,
                              .tile = options.tile});
  const AllReduceAlgorithm algorithm = parse_all_reduce_algorithm(choice.algorithm);
  check_algorithm(team, algorithm, options.op);
  const CollectiveCall call = {stream,      team,          operation,    buffers.in,
                               buffers.out, buffers.count, buffers.type, buffers.symmetric,
                               options.op,  choice};
  compare_calls(call);
  if (buffers.count == 0) return;
  switch (algorithm) {
    case AllReduceAlgorithm::automatic:
      throw_undecided(operation);
    case AllReduceAlgorithm::packet:
      return launch_packet_all_reduce(call);
    case AllReduceAlgorithm::packet_two_shot:
      return launch_packet_two_shot_all_reduce(call);
    case AllReduceAlgorithm::one_shot:
      return launch_one_shot_all_reduce(call);
    case AllReduceAlgorithm::two_shot:
      return buffers.symmetric ? launch_direct_shard_reduce(call, ShardUse::gather)
                               : launch_staged_shard_reduce(call, ShardUse::gather);
    case AllReduceAlgorithm::two_shot_push:
      return launch_push_shard_reduce(call, ShardUse::gather);
    case AllReduceAlgorithm::ring:
      return launch_ring_all_reduce(call);
    case AllReduceAlgorithm::atomic:
      return launch_atomic_all_reduce(call);
  }
}

}  // namespace iridium
