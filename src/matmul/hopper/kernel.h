// The matrix product on Hopper: blocks stay, and take one tile of D after the other. One warpgroup
// keeps a ring of stages full by tensor copies; two multiply what is in them, and store.
#pragma once

#include "iridium/device/matrix.h"
#include "iridium/device/tensor_map.h"
#include "matmul/hopper/epilogue.h"
#include "matmul/hopper/geometry.h"
#include "matmul/hopper/instructions.h"
#include "matmul/hopper/wgmma.h"

namespace iridium::hopper {

/// What all kernels are given.
template <HalfNumber T>
struct Product {
  TensorMap a;
  TensorMap b;
  TensorMap d;  ///< when `stores_boxes`
  T* d_data;
  std::size_t d_pitch;
  int rows;     ///< of D
  int columns;  ///< of D
  int k_blocks;
  int band;  ///< clusters' tiles below each other that are done together
  bool stores_boxes;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// Where a warpgroup is in the ring.
template <int stages>
struct Place {
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ __forceinline__ void advance() {
    if (++stage < stages) return;
    stage = 0;
    parity ^= 1;
  }
};

/// The block's memory.
template <TileShape tile>
struct Ring {
  using G = Geometry<tile>;
  std::byte* staging;
  std::uint32_t stages;
  std::uint32_t full;   ///< barriers: a stage's bytes are here
  std::uint32_t empty;  ///< barriers: the cluster's warpgroups have read it

  __device__ __forceinline__ Ring() {
    extern __shared__ std::byte block_memory[];
    std::byte* const aligned =
        block_memory + (G::alignment - shared_address(block_memory) % G::alignment) % G::alignment;
    staging = aligned + G::stages * G::stage_bytes;
    stages = opaque(shared_address(aligned));
    full = opaque(shared_address(staging + G::staging_bytes));
    empty = full + G::stages * 8;
  }
  /// By one thread.
  __device__ __forceinline__ void init() const {
    for (int i = 0; i < G::stages; ++i) {
      init_barrier(full + 8 * i, 1);
      init_barrier(empty + 8 * i, tile.cluster * G::groups * 4);
    }
    publish_barriers();
  }
};

/// Loads this block's stages of the tiles, one thread alone.
template <HalfNumber T, TileShape tile, bool b_along_k, class Tiles>
__device__ __forceinline__ void load_stages(const Product<T>& product, const Ring<tile>& ring,
                                            const Tiles& tiles, int rank) {
  using G = Geometry<tile>;
  Place<G::stages> place;
  tiles.for_each([&](int row, int column) {
    for (int k = 0; k < product.k_blocks; ++k) {
      // The warps that multiply arrive. A new barrier is as one whose phase 1 is over: the first
      // round does not wait.
      await_phase(ring.empty + 8 * place.stage, place.parity ^ 1);
      const std::uint32_t full = ring.full + 8 * place.stage;
      const std::uint32_t a = ring.stages + place.stage * G::stage_bytes;
      const std::uint32_t b = a + tile.rows() * row_bytes;
      arrive_expecting(full, G::stage_bytes);
      copy_box(a, &product.a, row, k * k_block, full);
      // Each block of a cluster loads half of B's part, for both.
      if constexpr (b_along_k && tile.cluster == 1) {
        copy_box(b, &product.b, column, k * k_block, full);
      } else if constexpr (b_along_k) {
        constexpr int half = tile.columns / 2;
        copy_box_to_both(b + rank * half * row_bytes, &product.b, column + rank * half, k * k_block,
                         full);
      } else {
#pragma unroll
        for (int panel = 0; panel < tile.columns / 64; ++panel) {
          if constexpr (tile.cluster == 1)
            copy_box(b + panel * panel_bytes, &product.b, k * k_block, column + panel * 64, full);
          else if (panel % 2 == rank)
            copy_box_to_both(b + panel * panel_bytes, &product.b, k * k_block, column + panel * 64,
                             full);
        }
      }
      place.advance();
    }
  });
  if constexpr (tile.cluster > 1) {
    // The block's memory must outlive what the other block sends: once every stage is empty, all
    // its copies and arrivals are here, and ours are there.
    for (int i = 0; i < G::stages; ++i) {
      await_phase(ring.empty + 8 * place.stage, place.parity ^ 1);
      place.advance();
    }
  }
}

/// One warpgroup's part of the tiles.
template <HalfNumber T, TileShape tile, bool b_along_k, class Tiles>
__device__ __forceinline__ void multiply_stages(const Product<T>& product, const Ring<tile>& ring,
                                                const Tiles& tiles) {
  using G = Geometry<tile>;
  const int group = static_cast<int>(threadIdx.x) / 128 - 1;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group_row = group / G::column_groups * 64;
  const int group_column = group % G::column_groups * G::group_columns;
  // Along K: rows of 128 bytes, 8 of them to an atom of the swizzle, in which 16 elements of K are
  // 32 bytes. Across: panels of 64 columns, in which 8 rows of K are an atom.
  constexpr std::uint32_t a_step = 32 >> 4;
  constexpr std::uint32_t b_step = (b_along_k ? 32 : 16 * row_bytes) >> 4;
  constexpr std::uint64_t a_layout = operand_layout(16, 8 * row_bytes);
  constexpr std::uint64_t b_layout = operand_layout(b_along_k ? 16 : panel_bytes, 8 * row_bytes);
  // In a cluster, the upper bits of an address name the block.
  const auto operand = [&](int first) {
    return opaque(((ring.stages + first * row_bytes) & 0x3FFFF) >> 4);
  };
  const std::uint32_t first_a = operand(group_row);
  const std::uint32_t first_b = operand(tile.rows() + group_column);
  std::byte* const staging = ring.staging + group * 2 * panel_bytes;
  const Output<T> out = {product.stores_boxes ? &product.d : nullptr, product.d_data,
                         product.d_pitch, product.rows, product.columns};
  // Every warp answers for its own reads.
  const auto release = [&](int stage) {
    if constexpr (tile.cluster > 1) {
      if (lane < tile.cluster) arrive_at(ring.empty + 8 * stage, lane);
    } else {
      if (lane == 0) arrive(ring.empty + 8 * stage);
    }
  };

  float sums[G::accumulators];
#pragma unroll
  for (float& sum : sums) sum = 0;
  Place<G::stages> place;
  int panel = 0;
  tiles.for_each([&](int row, int column) {
    int previous = place.stage;
    pin(sums);
    for (int k = 0; k < product.k_blocks; ++k) {
      await_phase(ring.full + 8 * place.stage, place.parity);  // the thread that loads, and copies
      const std::uint32_t stage = place.stage * (G::stage_bytes >> 4);
      fence_products();
#pragma unroll
      for (int part = 0; part < k_block / 16; ++part)
        multiply_tile<T, !b_along_k>(sums, a_layout | (first_a + stage + part * a_step),
                                     b_layout | (first_b + stage + part * b_step),
                                     part > 0 || k > 0);
      commit_products();
      // One group of products stays in flight; the one before it has read its stage.
      await_products<1>();
      if (k > 0) release(previous);
      previous = place.stage;
      place.advance();
    }
    await_products<0>();
    pin(sums);
    release(previous);
    store_sums(sums, out, staging, panel, row + group_row, column + group_column, group);
  });
  // The stores must have read the block's memory before the block gives it back.
  if (threadIdx.x % 128 == 0) await_stores_read<0>();
}

/// The tiles of a cluster: bands keep those that run at the same time close to a square, for the
/// L2 cache's sake.
template <TileShape tile>
struct ClusterTiles {
  TileGrid<tile.rows() * tile.cluster, tile.columns> grid;
  unsigned cluster;
  unsigned clusters;
  int rank;

  template <class Function>
  __device__ __forceinline__ void for_each(Function function) const {
    for (std::size_t i = cluster; i < grid.count(); i += clusters) {
      const auto corner = grid.at(i);
      function(static_cast<int>(corner.row) + rank * tile.rows(), static_cast<int>(corner.column));
    }
  }
};

template <HalfNumber T, TileShape tile, bool b_along_k>
__device__ __forceinline__ void multiply(const Product<T>& product) {
  const Ring<tile> ring;
  const int rank = tile.cluster > 1 ? rank_in_cluster() : 0;
  if (threadIdx.x == 0) {
    ring.init();
    prefetch(&product.a);
    prefetch(&product.b);
    if (product.stores_boxes) prefetch(&product.d);
  }
  __syncthreads();
  if constexpr (tile.cluster > 1) sync_cluster();

  const ClusterTiles<tile> tiles = {
      {static_cast<std::size_t>(product.rows), static_cast<std::size_t>(product.columns),
       TileOrder::swizzled, static_cast<std::size_t>(product.band)},
      blockIdx.x / tile.cluster,
      gridDim.x / tile.cluster,
      rank};
  if (threadIdx.x < 128) {
    give_registers<40>();
    if (threadIdx.x == 0) load_stages<T, tile, b_along_k>(product, ring, tiles, rank);
  } else {
    take_registers<232>();
    multiply_stages<T, tile, b_along_k>(product, ring, tiles);
  }
}

#endif

/// `b_along_k`: B is stored as [N,K].
template <HalfNumber T, TileShape tile, bool b_along_k>
struct Multiply {
  static constexpr int block_bytes = Geometry<tile>::block_bytes;
  static constexpr int cluster = tile.cluster;
  Product<T> product;

  IR_DEVICE void operator()(BlockOf<Geometry<tile>::threads>) const {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    multiply<T, tile, b_along_k>(product);
#endif
  }
};

}  // namespace iridium::hopper
