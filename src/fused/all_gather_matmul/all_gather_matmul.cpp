#include "iridium/all_gather_matmul.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/names.h"
#include "collectives/call_check/launch.h"
#include "collectives/plan.h"
#include "fused/all_gather_matmul/launch.h"
#include "iridium/device_barrier.h"
#include "matmul/check.h"
#include "matmul/choice.h"

namespace iridium {
namespace {

using detail::AllGatherMatmulCall;
using detail::MatmulOperand;

constexpr const char* operation = "all_gather_matmul";

constexpr Names<AllGatherMatmulAlgorithm, 3> algorithm_names = {"all_gather_matmul algorithm",
                                                                {"automatic", "unfused", "staged"}};
constexpr auto algorithms = algorithm_names.values();

constexpr Names<MatmulShards, 2> shard_names = {"shards", {"rows", "depth"}};
constexpr auto shards = shard_names.values();

std::size_t span_bytes(const MatmulOperand& matrix, MatmulType type) {
  if (matrix.rows == 0 || matrix.columns == 0) return 0;
  return ((matrix.rows - 1) * matrix.pitch + matrix.columns) * size_of(type);
}

/// Together the members' shards are the gathered A.
void check_shapes(const Team& team, const AllGatherMatmulCall& call, MatmulShards what) {
  const MatmulOperand& all = call.product.a;
  const MatmulOperand& shard = call.shard;
  const auto members = static_cast<std::size_t>(team.size());
  if (what != MatmulShards::rows && what != MatmulShards::depth)
    throw refusal(operation,
                  fmt::format("there are no shards with number {}", static_cast<int>(what)));
  const std::size_t in_rows = what == MatmulShards::rows ? members : 1;
  const std::size_t in_columns = members / in_rows;
  if (all.rows % in_rows != 0 || all.columns % in_columns != 0 ||
      shard.rows != all.rows / in_rows || shard.columns != all.columns / in_columns)
    throw refusal(operation, fmt::format("A has {} rows and {} columns; {} shards of {} × {}, "
                                         "which are {}, do not make that",
                                         all.rows, all.columns, members, shard.rows, shard.columns,
                                         name(what)));
  if (shard.pitch < shard.columns)
    throw refusal(operation, fmt::format("the shard has a pitch of {} elements and {} columns",
                                         shard.pitch, shard.columns));
}

void check_memory(const Team& team, const AllGatherMatmulCall& call) {
  const detail::TeamState& state = *detail::Access::team(team);
  const detail::MatmulCall& product = call.product;
  const auto check_apart = [&](const char* which, const MatmulOperand& other) {
    const auto gathered = reinterpret_cast<std::uintptr_t>(call.gathered);
    const auto begin = reinterpret_cast<std::uintptr_t>(other.data);
    const std::size_t gathered_bytes = span_bytes(product.a, product.type);
    const std::size_t bytes = span_bytes(other, product.type);
    if (gathered_bytes == 0 || bytes == 0 || begin >= gathered + gathered_bytes ||
        gathered >= begin + bytes)
      return;
    throw refusal(operation,
                  fmt::format("the gathered A ({} bytes at {}) overlaps {} ({} bytes at {})",
                              gathered_bytes, call.gathered, which, bytes, other.data));
  };
  const std::size_t shard_bytes = span_bytes(call.shard, product.type);
  if (shard_bytes != 0 && call.shard.data == nullptr)
    throw refusal(operation, fmt::format("the shard is null and has {} rows and {} columns",
                                         call.shard.rows, call.shard.columns));
  check_apart("the shard", call.shard);
  check_apart("B", product.b);
  state.require_reachable(operation, call.shard.data, shard_bytes);
  state.require_reachable(operation, call.gathered, span_bytes(product.a, product.type));
  state.require_reachable(operation, product.b.data, span_bytes(product.b, product.type));
  state.require_reachable(operation, product.d_data, span_bytes(product.d, product.result));
  if (call.symmetric) state.require_symmetric(operation, call.shard.data, shard_bytes);
}

/// Shards follow each other in the gathered A, without gaps between rows.
bool is_dense(const AllGatherMatmulCall& call, MatmulShards what) {
  return what == MatmulShards::depth ||
         (call.product.a.pitch == call.product.a.columns && call.shard.pitch == call.shard.columns);
}

/// Checked, and with `automatic` decided.
AllGatherMatmulAlgorithm chosen_algorithm(const AllGatherMatmulCall& call,
                                          const AllGatherMatmulOptions& options) {
  using enum AllGatherMatmulAlgorithm;
  if (options.gathering_blocks < 0)
    throw refusal(operation, fmt::format("{} gathering blocks", options.gathering_blocks));
  if (options.piece_depth % staged_depth_unit != 0)
    throw refusal(operation, fmt::format("a piece_depth of {}; expected a multiple of {}",
                                         options.piece_depth, staged_depth_unit));
  switch (options.algorithm) {
    case automatic:
      if (call.symmetric && !is_dense(call, options.shards)) return staged;
      [[fallthrough]];
    case unfused:
      if (is_dense(call, options.shards)) return unfused;
      throw refusal(operation,
                    fmt::format("unfused is for rows without gaps; the gathered A has {} columns "
                                "and a pitch of {}, the shard {} and {}",
                                call.product.a.columns, call.product.a.pitch, call.shard.columns,
                                call.shard.pitch));
    case staged:
      if (call.symmetric) return staged;
      throw refusal(operation, "staged is for shards in symmetric memory, which peers read");
  }
  throw refusal(operation, fmt::format("there is no algorithm with number {}",
                                       static_cast<int>(options.algorithm)));
}

/// What `staged` multiplies by.
MatmulAlgorithm staged_product(const Problem& product, const MatmulOptions& options) {
  using enum MatmulAlgorithm;
  if (options.algorithm == automatic) {
    if (object_to_algorithm(hopper_128x256, product)) return tiled;
    // With fewer tiles than half a GPU works on at a time, smaller ones.
    const std::size_t tiles = parts_of(product.rows, 128) * parts_of(product.columns, 256);
    const bool few = tiles < static_cast<std::size_t>(product.processors.count) / 2;
    return few && !options.invariant ? hopper_64x128 : hopper_128x256;
  }
  if (options.algorithm == tiled || options.algorithm == hopper_64x128 ||
      options.algorithm == hopper_128x256)
    return options.algorithm;
  throw refusal(operation, fmt::format("staged multiplies by tiled, hopper_64x128 and "
                                       "hopper_128x256, not {}",
                                       name(options.algorithm)));
}

void gather(StreamRef& stream, const Team& team, const AllGatherMatmulCall& call,
            MatmulShards what) {
  const MatmulOperand& all = call.product.a;
  const MatmulOperand& shard = call.shard;
  const DataType type = data_type(call.product.type);
  // Peers write nothing: `gathered` is this member's alone.
  if (what == MatmulShards::rows)
    detail::all_gather(stream, team,
                       {shard.data, call.gathered, shard.rows * shard.columns, type, false}, {});
  else
    detail::all_gather_columns(stream, team,
                               {{shard.data, shard.rows, shard.columns, shard.pitch},
                                {all.data, all.rows, all.columns, all.pitch},
                                call.gathered,
                                type,
                                false},
                               {});
}

}  // namespace

std::span<const AllGatherMatmulAlgorithm> all_gather_matmul_algorithms() {
  return algorithms;
}
std::string_view name(AllGatherMatmulAlgorithm algorithm) {
  return algorithm_names.name(algorithm);
}
AllGatherMatmulAlgorithm parse_all_gather_matmul_algorithm(std::string_view text) {
  return algorithm_names.parse(text);
}

std::span<const MatmulShards> matmul_shards() {
  return shards;
}
std::string_view name(MatmulShards what) {
  return shard_names.name(what);
}
MatmulShards parse_matmul_shards(std::string_view text) {
  return shard_names.parse(text);
}

void detail::all_gather_matmul(StreamRef& stream, const Team& team, const AllGatherMatmulCall& call,
                               const AllGatherMatmulOptions& options) {
  Access::team(team)->core().require_own_process();
  Access::team(team)->require_member(operation);
  check_shapes(team, call, options.shards);
  const AllGatherMatmulAlgorithm algorithm = chosen_algorithm(call, options);
  const Problem product = checked_problem(operation, stream, call.product, options.matmul);
  check_memory(team, call);
  if (product.rows == 0 || product.depth == 0) return run_product(product, options.matmul);
  if (algorithm == AllGatherMatmulAlgorithm::unfused) {
    gather(stream, team, call, options.shards);
    return run_product(product, options.matmul);
  }
  const MatmulAlgorithm multiply = staged_product(product, options.matmul);
  const GatherProduct staged = {.team = team,
                                .product = product,
                                .gathered = call.gathered,
                                .shard = call.shard.data,
                                .shard_rows = call.shard.rows,
                                .shard_depth = call.shard.columns,
                                .shard_pitch = call.shard.pitch,
                                .gathering_blocks = options.gathering_blocks,
                                .piece_depth = options.piece_depth};
  // Members' shards are there, and may be written again when all members are done with them.
  device_barrier(stream, team);
  // Tensor copies have no matrices without columns; this member gathers all the same.
  if (multiply == MatmulAlgorithm::tiled || product.columns == 0)
    launch_tiled_gather_product(staged);
  else
    launch_hopper_gather_product(staged, multiply);
  device_barrier(stream, team);
}

}  // namespace iridium
