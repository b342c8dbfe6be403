#include "iridium/columns.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "collectives/call_check/launch.h"
#include "collectives/columns/launch.h"
#include "collectives/plan.h"

namespace iridium {
namespace {

using detail::ColumnBuffers;
using detail::ColumnsOf;

/// The bytes from a matrix's first element to behind its last.
std::size_t span_bytes(const char* operation, const char* which, const ColumnsOf& matrix,
                       DataType type) {
  if (matrix.pitch < matrix.columns)
    throw refusal(operation, fmt::format("{} has a pitch of {} elements and {} columns", which,
                                         matrix.pitch, matrix.columns));
  if (matrix.rows == 0 || matrix.columns == 0) return 0;
  // Differences of addresses are signed.
  constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max();
  if (matrix.pitch > most / size_of(type) / matrix.rows)
    throw refusal(operation, fmt::format("{} rows of {} elements of {} are over the limit of {} "
                                         "bytes",
                                         matrix.rows, matrix.pitch, name(type), most));
  return ((matrix.rows - 1) * matrix.pitch + matrix.columns) * size_of(type);
}

/// Whether two matrices with the same pitch that lie in each other's span have no element in
/// common: they are different columns of one.
bool are_different_columns(const ColumnBuffers& buffers) {
  if (buffers.in.pitch != buffers.out.pitch) return false;
  const std::size_t row = buffers.in.pitch * size_of(buffers.type);
  if (row == 0) return true;
  const auto in = reinterpret_cast<std::uintptr_t>(buffers.in.data);
  const auto out = reinterpret_cast<std::uintptr_t>(buffers.out.data);
  const std::size_t ahead = out >= in ? (out - in) % row : (row - (in - out) % row) % row;
  return ahead >= buffers.in.columns * size_of(buffers.type) &&
         ahead + buffers.out.columns * size_of(buffers.type) <= row;
}

/// `whole` has a column of `part` for every member.
void check_shapes(const char* operation, const char* part_name, const ColumnsOf& part,
                  const char* whole_name, const ColumnsOf& whole, int members) {
  if (part.rows == whole.rows && whole.columns % static_cast<std::size_t>(members) == 0 &&
      whole.columns / static_cast<std::size_t>(members) == part.columns)
    return;
  throw refusal(operation,
                fmt::format("{} has {} rows and {} columns for {} members; {} has {} rows and {} "
                            "columns",
                            whole_name, whole.rows, whole.columns, members, part_name, part.rows,
                            part.columns));
}

/// `in_place`: how many bytes behind `in` an `out` that overlaps it may begin.
void check_matrices(const char* operation, const Team& team, const ColumnBuffers& buffers,
                    std::ptrdiff_t in_place) {
  Extents extents = {span_bytes(operation, "in", buffers.in, buffers.type),
                     span_bytes(operation, "out", buffers.out, buffers.type),
                     {}};
  const auto distance =
      static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(buffers.out.data) -
                                  reinterpret_cast<std::uintptr_t>(buffers.in.data));
  const bool is_in_place = distance == in_place && buffers.in.pitch == buffers.out.pitch;
  if (are_different_columns(buffers) || (is_in_place && !buffers.symmetric))
    extents.in_place = {distance};
  check_buffers(operation, team,
                {buffers.in.data, buffers.out_data, 0, buffers.type, buffers.symmetric}, extents);
}

/// The call of either, which members in checked mode compare first.
ColumnCall column_call(StreamRef& stream, const Team& team, const char* operation,
                       const ColumnBuffers& buffers, std::size_t columns, ReduceOp op,
                       const Choice& choice) {
  const ColumnCall made = {{stream, team, operation, buffers.in.data, buffers.out_data, columns,
                            buffers.type, buffers.symmetric, op, choice},
                           buffers.in.rows,
                           buffers.in.pitch,
                           buffers.out.pitch};
  compare_calls(made.call,
                {.rows = made.rows, .in_pitch = made.in_pitch, .out_pitch = made.out_pitch});
  return made;
}

/// Packets move no columns.
template <class Algorithm>
void refuse_packets(const char* operation, Algorithm algorithm) {
  if (algorithm == Algorithm::packet)
    throw refusal(operation, "packet does not work along columns");
}

}  // namespace

void detail::require_matrix(const char* operation, const char* which, std::size_t size,
                            std::size_t first, const ColumnsOf& matrix) {
  // Others refuse what does not fit 64 bits.
  if (matrix.rows == 0 || matrix.columns == 0 || matrix.pitch > ~std::size_t{0} / matrix.rows)
    return;
  const std::size_t needed = (matrix.rows - 1) * matrix.pitch + matrix.columns;
  if (first <= size && size - first >= needed) return;
  throw refusal(
      operation,
      fmt::format("{} with {} rows, {} columns, a pitch of {} and its first element at {} "
                  "needs {} elements from there on; its array has {}",
                  which, matrix.rows, matrix.columns, matrix.pitch, first, needed, size));
}

void detail::all_gather_columns(StreamRef& stream, const Team& team, const ColumnBuffers& buffers,
                                const AllGatherOptions& options) {
  constexpr const char* operation = "all_gather_columns";
  Access::team(team)->require_member(operation);
  check_shapes(operation, "in", buffers.in, "out", buffers.out, team.size());
  const std::size_t part_bytes = buffers.in.columns * size_of(buffers.type);
  check_matrices(operation, team, buffers, -static_cast<std::ptrdiff_t>(part_bytes) * team.rank());
  refuse_packets(operation, options.algorithm);
  const bool is_automatic = options.algorithm == AllGatherAlgorithm::automatic;
  Choice choice = plan(operation, team, buffers.symmetric,
                       buffers.out.rows * buffers.out.columns * size_of(buffers.type),
                       {.algorithm = is_automatic ? "" : name(options.algorithm),
                        .blocks = options.blocks,
                        .tile = options.tile,
                        .tuned_as = "all_gather"});
  if (choice.algorithm == name(AllGatherAlgorithm::packet))
    choice.algorithm = name(AllGatherAlgorithm::pull);
  const AllGatherAlgorithm algorithm = parse_all_gather_algorithm(choice.algorithm);
  if (algorithm == AllGatherAlgorithm::automatic) throw_undecided(operation);
  const ColumnCall columns =
      column_call(stream, team, operation, buffers, buffers.in.columns, ReduceOp::sum, choice);
  if (buffers.in.rows == 0 || buffers.in.columns == 0) return;
  launch_column_gather(columns, algorithm == AllGatherAlgorithm::push);
}

void detail::reduce_scatter_columns(StreamRef& stream, const Team& team,
                                    const ColumnBuffers& buffers,
                                    const ReduceScatterOptions& options) {
  constexpr const char* operation = "reduce_scatter_columns";
  Access::team(team)->require_member(operation);
  check_shapes(operation, "out", buffers.out, "in", buffers.in, team.size());
  const std::size_t part_bytes = buffers.out.columns * size_of(buffers.type);
  check_matrices(operation, team, buffers, static_cast<std::ptrdiff_t>(part_bytes) * team.rank());
  refuse_packets(operation, options.algorithm);
  if (options.algorithm == ReduceScatterAlgorithm::push)
    throw refusal(operation, "push does not work along columns");
  Choice choice =
      plan(operation, team, buffers.symmetric,
           buffers.in.rows * buffers.in.columns * size_of(buffers.type),
           {.blocks = options.blocks, .tile = options.tile, .tuned_as = "reduce_scatter"});
  choice.algorithm = name(ReduceScatterAlgorithm::pull);
  const ColumnCall columns =
      column_call(stream, team, operation, buffers, buffers.out.columns, options.op, choice);
  if (buffers.out.rows == 0 || buffers.out.columns == 0) return;
  launch_column_reduce(columns);
}

}  // namespace iridium
