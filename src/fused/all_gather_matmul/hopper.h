// `staged` on Hopper: some blocks gather A, the others run the product's pipeline on what is there.
#pragma once

#include "fused/all_gather_matmul/pieces.h"
#include "matmul/hopper/kernel.h"

namespace iridium::hopper {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// Tiles of which A is gathered meanwhile: those come first whose rows are gathered first.
template <TileShape tile>
struct GatheredTiles : ClusterTiles<tile> {
  const GatherPieces& pieces;
  const LanePieces* lane;

  /// Ended by the block that gathers the piece, which waits for nobody.
  __device__ __forceinline__ void await(int row, int k) const {
    if (static_cast<std::size_t>(k) % pieces.piece_depth != 0) return;
    const std::size_t piece = pieces.index_of(row, k);
    while (target::load<Order::acquire, Scope::device>(nullptr, &lane->ready[piece]) == 0) {
    }
    order_before_reading_copies();
  }
  template <class Function>
  __device__ __forceinline__ void for_each(Function function) const {
    const int down = static_cast<int>((pieces.rows + tile.rows() - 1) / tile.rows());
    const int first = static_cast<int>(pieces.first_row * (pieces.piece_rows / tile.rows()));
    ClusterTiles<tile>::for_each([&](int row, int column) {
      function((row / tile.rows() + first) % down * tile.rows(), column);
    });
  }
};

/// `leave_pieces`, by the warpgroups that multiply: others have given their registers away.
__device__ __forceinline__ void leave_pieces_by_groups(const Lane& lane, std::size_t count) {
  __shared__ bool is_last;
  LanePieces* const pieces = lane.pieces();
  const int thread = static_cast<int>(threadIdx.x) - 128;
  sync_groups();
  if (thread == 0)
    is_last = target::update<AtomicOp::add, Order::acq_rel, Scope::device>(nullptr,
                                                                           &pieces->leavers, 1u) +
                  1 ==
              gridDim.x;
  sync_groups();
  if (is_last) clear_pieces(pieces, count, thread, 256);
}

#endif

/// As `TiledGatherProduct`. Blocks of a cluster would have to agree on what they do: tiles are of
/// single blocks.
template <MatmulInput T, MatmulResult<T> D, TileShape tile, bool b_along_k>
struct GatherMultiply {
  static_assert(tile.blocks() == 1);
  static constexpr int block_bytes = Geometry<tile>::block_bytes;
  Lane lane;
  Product<T, D> product;
  GatherPieces pieces;  ///< with rows and a depth of multiples of the tile's and of a stage's
  Matrix<const T> shard;
  Matrix<T> gathered;
  std::uint32_t gathering_blocks;

  IR_DEVICE void operator()([[maybe_unused]] BlockOf<Geometry<tile>::threads> block) const {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    const std::uint32_t ticket = take_ticket(block, lane);
    if (ticket < gathering_blocks) {
      gather_pieces(block, lane, pieces, gathered, shard, ticket, gathering_blocks);
      return leave_pieces(block, lane, pieces.count());
    }
    const GatheredTiles<tile> tiles = {
        tiles_of<tile>(product, ticket - gathering_blocks, gridDim.x - gathering_blocks), pieces,
        lane.pieces()};
    multiply<b_along_k>(product, tiles, [&] { leave_pieces_by_groups(lane, pieces.count()); });
#endif
  }
};

}  // namespace iridium::hopper
