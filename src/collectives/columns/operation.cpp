#include "collectives/columns/operation.h"

#include <algorithm>

#include "collectives/collective_case.h"
#include "iridium/columns.h"

namespace iridium {
namespace {

const Parameter rows_parameter = {"rows", {"7"}};
const Parameter matrix_bytes = {"bytes", {"4012", "100000"}};
const Parameter gather_algorithm = {"algorithm", {"automatic", "push", "pull"}};

/// Matrices without gaps between their rows, of about the bytes asked for.
struct Shape {
  std::size_t rows;
  std::size_t columns;  ///< of a member's part
  std::size_t joined;   ///< of all members' together

  Shape(const CollectiveArguments& parsed, const Arguments& arguments, int members, int parts)
      : rows(count_argument(arguments, rows_parameter)),
        columns(std::max<std::size_t>(1, parsed.count(parts) / rows)),
        joined(columns * static_cast<std::size_t>(members)) {}

  detail::ColumnBuffers buffers(const detail::CollectiveBuffers& arrays, std::size_t in_columns,
                                std::size_t out_columns) const {
    return {{arrays.in, rows, in_columns, in_columns},
            {arrays.out, rows, out_columns, out_columns},
            arrays.out,
            arrays.type,
            arrays.symmetric};
  }
};

std::unique_ptr<OperationCase> prepare_gather(Context& context, const Team& team,
                                              const Arguments& arguments) {
  const CollectiveArguments parsed = parse_collective(arguments);
  const AllGatherOptions options = {
      .algorithm = parse_all_gather_algorithm(text_argument(arguments, gather_algorithm)),
      .blocks = parsed.blocks,
      .tile = parsed.tile};
  const Shape shape(parsed, arguments, team.size(), 1);
  return std::make_unique<CollectiveCase>(
      context, team, parsed,
      Collective{
          .count = shape.columns,
          .in_count = shape.rows * shape.columns,
          .out_count = shape.rows * shape.joined,
          .reduces = false,
          .source =
              [shape](std::size_t i) {
                const std::size_t column = i % shape.joined;
                return SourceElement{static_cast<int>(column / shape.columns),
                                     i / shape.joined * shape.columns + column % shape.columns};
              },
          .launch =
              [team, options, shape](StreamRef& stream, const detail::CollectiveBuffers& arrays) {
                detail::all_gather_columns(
                    stream, team, shape.buffers(arrays, shape.columns, shape.joined), options);
              },
          .payload = shape.rows * shape.joined,
          .bus_factor = 1.0 * (team.size() - 1) / team.size()});
}

std::unique_ptr<OperationCase> prepare_scatter(Context& context, const Team& team,
                                               const Arguments& arguments) {
  const CollectiveArguments parsed = parse_collective(arguments);
  const ReduceScatterOptions options = {
      .op = parsed.op, .blocks = parsed.blocks, .tile = parsed.tile};
  const Shape shape(parsed, arguments, team.size(), team.size());
  const std::size_t first =
      team.is_member() ? static_cast<std::size_t>(team.rank()) * shape.columns : 0;
  return std::make_unique<CollectiveCase>(
      context, team, parsed,
      Collective{
          .count = shape.columns,
          .in_count = shape.rows * shape.joined,
          .out_count = shape.rows * shape.columns,
          .reduces = true,
          .source =
              [shape, first](std::size_t i) {
                return SourceElement{0,
                                     i / shape.columns * shape.joined + first + i % shape.columns};
              },
          .launch =
              [team, options, shape](StreamRef& stream, const detail::CollectiveBuffers& arrays) {
                detail::reduce_scatter_columns(
                    stream, team, shape.buffers(arrays, shape.joined, shape.columns), options);
              },
          .payload = shape.rows * shape.joined,
          .bus_factor = 1.0 * (team.size() - 1) / team.size()});
}

}  // namespace

Operation all_gather_columns_operation() {
  return {"all_gather_columns",
          "every member gets all members' columns, side by side",
          {matrix_bytes, rows_parameter, dtype_parameter, gather_algorithm, memory_parameter,
           blocks_wish, tile_wish},
          prepare_gather};
}

Operation reduce_scatter_columns_operation() {
  return {"reduce_scatter_columns",
          "every member gets its columns of the reduction of all members' matrices",
          {matrix_bytes, rows_parameter, dtype_parameter, op_parameter, memory_parameter,
           blocks_wish, tile_wish},
          prepare_scatter};
}

}  // namespace iridium
