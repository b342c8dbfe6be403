#pragma once

#include "fused/all_gather_matmul/pieces.h"
#include "matmul/problem.h"
#include "runtime/team_launch.h"

namespace iridium {

/// Checked; its product is that of the gathered A.
struct GatherProduct {
  const Team& team;
  Problem product;
  void* gathered;
  const void* shard;
  std::size_t shard_rows;
  std::size_t shard_depth;
  std::size_t shard_pitch;
  int gathering_blocks;     ///< 0: as many as suit
  std::size_t piece_depth;  ///< 0: as suits

  template <class T>
  Matrix<const T> shard_of() const {
    return {static_cast<const T*>(shard), shard_rows, shard_depth, shard_pitch};
  }
  template <class T>
  Matrix<T> gathered_of() const {
    return {static_cast<T*>(gathered), product.rows, product.depth, product.a_pitch};
  }
};

/// What products of `staged` take of K at a time: a `piece_depth` is a multiple of it.
inline constexpr std::size_t staged_depth_unit = 64;

/// Pieces with rows of a multiple of `row_unit`.
GatherPieces plan_pieces(const GatherProduct& call, std::size_t row_unit);
/// How many blocks gather them.
std::size_t plan_gathering_blocks(const GatherProduct& call, const GatherPieces& pieces);

/// `staged`, multiplying as `tiled` does.
void launch_tiled_gather_product(const GatherProduct& call);
/// `staged`, multiplying as this algorithm of Hopper's does: hopper_64x128 or hopper_128x256.
void launch_hopper_gather_product(const GatherProduct& call, MatmulAlgorithm algorithm);

KernelList all_gather_matmul_kernels();

KernelList tiled_gather_product_kernels();
KernelList hopper_gather_product_kernels();

}  // namespace iridium
