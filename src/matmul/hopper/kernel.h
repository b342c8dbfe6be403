// The matrix product on Hopper: blocks stay, and take one tile of A × B after the other. One
// warpgroup keeps a ring of stages full; two multiply what is in them, and store.
#pragma once

#include "iridium/device/matrix.h"
#include "matmul/hopper/epilogue.h"
#include "matmul/hopper/loading.h"
#include "matmul/hopper/wgmma.h"

namespace iridium::hopper {

/// What all kernels are given.
template <MatmulInput T, MatmulResult<T> D>
struct Product {
  Operand<T> a;
  Operand<T> b;
  TensorMap d_map;   ///< when `stores_boxes`
  bool loads_boxes;  ///< by tensor copies; else element by element
  bool stores_boxes;
  Matrix<D> d;
  int rows;     ///< of A × B
  int columns;  ///< of A × B
  int k_blocks;
  int band;  ///< clusters' tiles below each other that are done together
  Epilogue epilogue;
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
  std::uint32_t stages;
  std::uint32_t staging;
  std::uint32_t full;   ///< barriers: a stage's bytes are here
  std::uint32_t empty;  ///< barriers: the cluster's warpgroups have read it

  __device__ __forceinline__ Ring() {
    extern __shared__ std::byte block_memory[];
    const std::uint32_t memory = shared_address(block_memory);
    stages = opaque(memory + (G::alignment - memory % G::alignment) % G::alignment);
    staging = stages + G::stages * G::stage_bytes;
    full = opaque(staging + G::staging_bytes);
    empty = full + G::stages * 8;
  }
  /// By one thread. So many threads fill a stage.
  __device__ __forceinline__ void init(int fillers) const {
    for (int i = 0; i < G::stages; ++i) {
      init_barrier(full + 8 * i, fillers);
      init_barrier(empty + 8 * i, tile.cluster * G::groups * 4);
    }
    publish_barriers();
  }
};

/// The tiles of a cluster: bands keep those that run at the same time close to a square, for the
/// L2 cache's sake. Of each, the blocks have rows or parts of K.
template <TileShape tile>
struct ClusterTiles {
  static constexpr TileShape shape = tile;
  TileGrid<tile.rows() * tile.cluster, tile.columns> grid;
  unsigned cluster;
  unsigned clusters;
  int rank;
  int k_blocks;

  __device__ __forceinline__ int first_k() const {
    return tile.k_parts == 1 ? 0 : rank * k_blocks / tile.k_parts;
  }
  __device__ __forceinline__ int end_k() const {
    return tile.k_parts == 1 ? k_blocks : (rank + 1) * k_blocks / tile.k_parts;
  }
  /// Before the part of A at (row, k) is loaded.
  __device__ __forceinline__ void await(int, int) const {}
  template <class Function>
  __device__ __forceinline__ void for_each(Function function) const {
    for (std::size_t i = cluster; i < grid.count(); i += clusters) {
      const auto corner = grid.at(i);
      const int below = tile.cluster == 1 ? 0 : rank * tile.rows();
      function(static_cast<int>(corner.row) + below, static_cast<int>(corner.column));
    }
  }
};

/// Loads this block's stages of the tiles: one thread by tensor copies, or all of the warpgroup.
template <TileShape tile, bool b_along_k, class T, class D, class Tiles>
__device__ __forceinline__ void load_stages(const Product<T, D>& product, const Ring<tile>& ring,
                                            const Tiles& tiles) {
  using G = Geometry<tile>;
  Place<G::stages> place;
  const auto for_each_stage = [&](auto load) {
    tiles.for_each([&](int row, int column) {
      for (int k = tiles.first_k(); k < tiles.end_k(); ++k) {
        // The warps that multiply arrive. A new barrier is as one whose phase 1 is over: the first
        // round does not wait.
        await_phase(ring.empty + 8 * place.stage, place.parity ^ 1);
        tiles.await(row, k * k_block<T>);
        load(ring.stages + place.stage * G::stage_bytes, ring.full + 8 * place.stage, row, column,
             k * k_block<T>);
        place.advance();
      }
    });
  };
  if (!product.loads_boxes)
    for_each_stage([&](std::uint32_t to, std::uint32_t full, int row, int column, int k) {
      copy_stage<tile, b_along_k>(to, full, product.a, product.b, row, column, k);
    });
  else if (threadIdx.x == 0)
    for_each_stage([&](std::uint32_t to, std::uint32_t full, int row, int column, int k) {
      request_stage<tile, b_along_k>(to, full, product.a, product.b, row, column, k, tiles.rank);
    });
  if constexpr (tile.cluster > 1) {
    if (threadIdx.x != 0) return;
    // The block's memory must outlive what the other block sends: once every stage is empty, all
    // its copies and arrivals are here, and ours are there.
    for (int i = 0; i < G::stages; ++i) {
      await_phase(ring.empty + 8 * place.stage, place.parity ^ 1);
      place.advance();
    }
  }
}

/// fp8 products keep 13 bits of their sums: every few stages those are added to others in fp32.
template <class T>
inline constexpr int stages_in_one_sum = std::same_as<T, e4m3> ? 4 : 0;

/// One warpgroup's part of the tiles.
template <TileShape tile, bool b_along_k, class T, class D, class Tiles>
__device__ __forceinline__ void multiply_stages(const Product<T, D>& product,
                                                const Ring<tile>& ring, const Tiles& tiles) {
  using G = Geometry<tile>;
  constexpr int together = stages_in_one_sum<T>;
  const int group = static_cast<int>(threadIdx.x) / 128 - 1;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group_row = group / G::column_groups * 64;
  const int group_column = group % G::column_groups * G::group_columns;
  // Along K: rows of 128 bytes, 8 of them to an atom of the swizzle, in which a product takes 32
  // bytes. Across: panels of 64 columns, in which 8 rows of K are an atom.
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
  const std::uint32_t staging = ring.staging + group * 2 * panel_bytes;
  const Output<D> out = {product.stores_boxes ? &product.d_map : nullptr, product.epilogue,
                         product.d, product.rows, product.columns};
  // Every warp answers for its own reads.
  const auto release = [&](int stage) {
    if constexpr (tile.cluster > 1) {
      if (lane < tile.cluster) arrive_at(ring.empty + 8 * stage, lane);
    } else {
      if (lane == 0) arrive(ring.empty + 8 * stage);
    }
  };

  float sums[G::accumulators];
  float whole_sums[together > 0 ? G::accumulators : 1];
#pragma unroll
  for (float& sum : sums) sum = 0;
  Place<G::stages> place;
  int panel = 0;
  tiles.for_each([&](int row, int column) {
    int previous = place.stage;
    const int first_k = tiles.first_k();
    const int end_k = tiles.end_k();
#pragma unroll
    for (float& sum : whole_sums) sum = 0;
    pin(sums);
    for (int k = first_k; k < end_k; ++k) {
      await_phase(ring.full + 8 * place.stage, place.parity);  // the thread that loads, and copies
      const std::uint32_t stage = place.stage * (G::stage_bytes >> 4);
      const bool is_first = together > 0 ? (k - first_k) % together == 0 : k == first_k;
      fence_products();
#pragma unroll
      for (int part = 0; part < row_bytes / 32; ++part)
        multiply_tile<T, !b_along_k>(sums, a_layout | (first_a + stage + part * a_step),
                                     b_layout | (first_b + stage + part * b_step),
                                     part > 0 || !is_first);
      commit_products();
      // One group of products stays in flight; the one before it has read its stage.
      await_products<1>();
      if (k > first_k) release(previous);
      previous = place.stage;
      place.advance();
      if constexpr (together > 0) {
        if ((k - first_k) % together != together - 1 && k != end_k - 1) continue;
        await_products<0>();
        pin(sums);
#pragma unroll
        for (int i = 0; i < G::accumulators; ++i) whole_sums[i] += sums[i];
      }
    }
    await_products<0>();
    pin(sums);
    if (first_k < end_k) release(previous);
    if constexpr (together > 0) {
#pragma unroll
      for (int i = 0; i < G::accumulators; ++i) sums[i] = whole_sums[i];
    }
    if constexpr (tile.k_parts == 1) {
      store_sums(sums, out, staging, panel, row + group_row, column + group_column, group);
    } else {
      // Both warpgroups have read the last stages.
      sync_groups();
      put_sums<tile.columns, G::accumulators>(ring.stages, sums, group_row, group_column);
      exchange_in_cluster();
      constexpr int rows = tile.rows() / tile.k_parts;
      store_rows<tile.columns, tile.k_parts>(out, ring.stages, tiles.rank * rows, rows, row, column,
                                             static_cast<int>(threadIdx.x) - 128, 128 * G::groups);
    }
  });
  // The stores must have read the block's memory before the block gives it back.
  if (product.stores_boxes && threadIdx.x % 128 == 0) await_stores_read<0>();
}

/// The tiles of the cluster among `clusters`.
template <TileShape tile, class T, class D>
__device__ __forceinline__ ClusterTiles<tile> tiles_of(const Product<T, D>& product,
                                                       unsigned cluster, unsigned clusters) {
  return {{static_cast<std::size_t>(product.rows), static_cast<std::size_t>(product.columns),
           TileOrder::swizzled, static_cast<std::size_t>(product.band)},
          cluster,
          clusters,
          tile.blocks() > 1 ? rank_in_cluster() : 0,
          product.k_blocks};
}

/// This block's part of the tiles. Warpgroups that multiply call finish() when they have.
template <bool b_along_k, class T, class D, class Tiles, class Finish>
__device__ __forceinline__ void multiply(const Product<T, D>& product, const Tiles& tiles,
                                         Finish finish) {
  constexpr TileShape tile = Tiles::shape;
  const Ring<tile> ring;
  if (threadIdx.x == 0) {
    ring.init(product.loads_boxes ? 1 : 128);
    if (product.loads_boxes) {
      prefetch(&product.a.map);
      prefetch(&product.b.map);
    }
    if (product.stores_boxes) prefetch(&product.d_map);
  }
  __syncthreads();
  if constexpr (tile.cluster > 1) sync_cluster();

  if (threadIdx.x < 128) {
    give_registers<40>();
    load_stages<tile, b_along_k>(product, ring, tiles);
    if constexpr (tile.k_parts > 1) exchange_in_cluster();
  } else {
    take_registers<232>();
    multiply_stages<tile, b_along_k>(product, ring, tiles);
    finish();
  }
  // Others read sums in this block's memory.
  if constexpr (tile.k_parts > 1) exchange_in_cluster();
}

#endif

/// `b_along_k`: B is stored as [N,K]. With parts of K, there are as many clusters as tiles.
template <MatmulInput T, MatmulResult<T> D, TileShape tile, bool b_along_k>
struct Multiply {
  static constexpr int block_bytes = Geometry<tile>::block_bytes;
  static constexpr int cluster = tile.blocks();
  Product<T, D> product;

  IR_DEVICE void operator()(BlockOf<Geometry<tile>::threads>) const {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    multiply<b_along_k>(
        product, tiles_of<tile>(product, blockIdx.x / tile.blocks(), gridDim.x / tile.blocks()),
        [] {});
#endif
  }
};

}  // namespace iridium::hopper
