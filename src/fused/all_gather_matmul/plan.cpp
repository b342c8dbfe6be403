#include <algorithm>

#include "fused/all_gather_matmul/launch.h"

namespace iridium {

GatherPieces plan_pieces(const GatherProduct& call, std::size_t row_unit) {
  constexpr std::size_t suitable_depth = 1024;
  const Problem& product = call.product;
  GatherPieces pieces = {.rows = product.rows,
                         .depth = product.depth,
                         .shard_rows = call.shard_rows,
                         .shard_depth = call.shard_depth,
                         .piece_rows = row_unit,
                         .piece_depth = call.piece_depth != 0 ? call.piece_depth : suitable_depth,
                         .down = 0,
                         .across = 0,
                         .first_row = 0};
  const auto count = [&] {
    pieces.down = parts_of(pieces.rows, pieces.piece_rows);
    pieces.across = parts_of(pieces.depth, pieces.piece_depth);
    return pieces.count();
  };
  while (count() > max_pieces) (pieces.down > 1 ? pieces.piece_rows : pieces.piece_depth) *= 2;
  if (pieces.shard_depth == pieces.depth)
    pieces.first_row =
        static_cast<std::size_t>(call.team.rank()) * pieces.shard_rows / pieces.piece_rows;
  return pieces;
}

std::size_t plan_gathering_blocks(const GatherProduct& call, const GatherPieces& pieces) {
  const auto suitable = static_cast<std::size_t>(std::max(1, call.product.processors.count / 8));
  const auto wanted = static_cast<std::size_t>(call.gathering_blocks);
  return std::min(pieces.count(), wanted != 0 ? wanted : suitable);
}

KernelList all_gather_matmul_kernels() {
  KernelList list = tiled_gather_product_kernels();
  for (const detail::KernelEntry* kernel : hopper_gather_product_kernels()) list.push_back(kernel);
  return list;
}

}  // namespace iridium
