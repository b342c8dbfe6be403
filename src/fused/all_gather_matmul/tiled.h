// `staged` on every device: some blocks gather A piece by piece, the others multiply what is there,
// as `tiled` does.
#pragma once

#include "fused/all_gather_matmul/pieces.h"
#include "matmul/tiled.h"

namespace iridium {

/// Blocks that gather wait for nobody, and have the lowest tickets: nothing depends on how many
/// blocks run at a time. Members' shards are there before the kernel, and stay until all members'
/// kernels are done.
template <TileProductNumber T, MatmulLayout layout, TileProductShape shape>
struct TiledGatherProduct {
  using Product = TileProduct<T, layout, shape>;
  using ABlock = typename Product::ABlock;

  Lane lane;
  GatherPieces pieces;  ///< with rows and a depth of multiples of the product's
  Matrix<const T> shard;
  Matrix<T> gathered;
  Matrix<const T> b;
  Matrix<T> d;
  std::size_t columns;  ///< of A × B
  Epilogue epilogue;
  std::uint32_t gathering_blocks;

  IR_DEVICE void operator()(ABlock block) const {
    const std::uint32_t ticket = take_ticket(block, lane);
    if (ticket < gathering_blocks)
      gather_pieces(block, lane, pieces, gathered, shard, ticket, gathering_blocks);
    else if (!multiply_tiles(block, ticket - gathering_blocks,
                             static_cast<std::uint32_t>(block.count()) - gathering_blocks))
      return;
    leave_pieces(block, lane, pieces.count());
  }

 private:
  /// False when the team has failed.
  IR_DEVICE bool multiply_tiles(ABlock block, std::size_t first, std::size_t step) const {
    const TileGrid<Product::rows, Product::columns> grid(pieces.rows, columns, TileOrder::swizzled);
    const std::size_t down = TileGrid<Product::rows, 1>(pieces.rows, 1).count();
    const std::size_t first_row = pieces.first_row * (pieces.piece_rows / Product::rows);
    Product product(block);
    IR_ROLLED for (std::size_t i = first; i < grid.count(); i += step) {
      const auto corner = grid.at(i);
      // Rows that are gathered first come first.
      const std::size_t row = (corner.row / Product::rows + first_row) % down * Product::rows;
      if (!multiply_tile(block, product, row, corner.column)) return false;
      product.for_each_eight([&](std::size_t r, std::size_t c, const float* sums) {
        store_finished(block.seat(), epilogue, d, columns, row + r, corner.column + c, sums);
      });
    }
    return true;
  }

  IR_DEVICE bool multiply_tile(ABlock block, Product& product, std::size_t row,
                               std::size_t column) const {
    product.clear();
    std::size_t k = 0;
    while (k < pieces.depth || product.pending() > 0) {
      for (; k < pieces.depth && product.has_room(); k += Product::depth) {
        if (k % pieces.piece_depth == 0 && !await_piece(block, row, k)) return false;
        product.fetch(gathered, b, row, column, k);
      }
      product.await();
      product.multiply();
    }
    return true;
  }

  IR_DEVICE bool await_piece(ABlock block, std::size_t row, std::size_t k) const {
    const std::size_t piece = pieces.index_of(row, k);
    return wait(block, lane, &lane.pieces()->ready[piece], 1, Compare::equal, -1, order::acquire,
                scope::device);
  }
};

}  // namespace iridium
