// From A and B to a stage in the block's memory: 128 bytes of K of each row, with the swizzle.
#pragma once

#include "iridium/device/tensor_map.h"
#include "matmul/hopper/geometry.h"
#include "matmul/hopper/instructions.h"

namespace iridium::hopper {

/// A or B as stored.
template <class T>
struct Operand {
  TensorMap map;  ///< for tensor copies, if they can read it
  const T* data;
  std::size_t pitch;
  int rows;
  int columns;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// What tensor copies would bring, element by element: for rows that do not begin at multiples of
/// 16 bytes. By the threads of a warpgroup.
template <class T>
__device__ __forceinline__ void copy_rows(std::uint32_t to, const Operand<T>& from, int rows,
                                          int row, int column) {
  constexpr int elements = vector_elements<T>;
  constexpr int vectors = row_bytes / 16;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x) % 128; i < rows * vectors; i += 128) {
    const int below = i / vectors;
    const int first = column + i % vectors * elements;
    alignas(16) T values[elements];
#pragma unroll
    for (int k = 0; k < elements; ++k) {
      values[k] = T(0.0f);
      if (row + below < from.rows && first + k < from.columns)
        values[k] = from.data[(row + below) * from.pitch + first + k];
    }
    store_vector(to + below * row_bytes + ((i % vectors) ^ (below % 8)) * 16,
                 reinterpret_cast<const uint4&>(values));
  }
}

/// One stage, from (row, k) of A and the columns from `column` on of B, for this block alone.
template <TileShape tile, bool b_along_k, class T>
__device__ __forceinline__ void copy_stage(std::uint32_t a, std::uint32_t full,
                                           const Operand<T>& from_a, const Operand<T>& from_b,
                                           int row, int column, int k) {
  const std::uint32_t b = a + tile.rows() * row_bytes;
  copy_rows(a, from_a, tile.rows(), row, k);
  if constexpr (b_along_k) {
    copy_rows(b, from_b, tile.columns, column, k);
  } else {
    for (int panel = 0; panel < tile.columns / k_block<T>; ++panel)
      copy_rows(b + panel * panel_bytes, from_b, k_block<T>, k, column + panel * k_block<T>);
  }
  order_before_copies();
  arrive(full);
}

/// The same by tensor copies, one thread alone; `rank`: of the block in a cluster that shares B's
/// part, of which each loads a half for both.
template <TileShape tile, bool b_along_k, class T>
__device__ __forceinline__ void request_stage(std::uint32_t a, std::uint32_t full,
                                              const Operand<T>& from_a, const Operand<T>& from_b,
                                              int row, int column, int k, int rank) {
  const std::uint32_t b = a + tile.rows() * row_bytes;
  arrive_expecting(full, Geometry<tile>::stage_bytes);
  copy_box(a, &from_a.map, row, k, full);
  if constexpr (b_along_k && tile.cluster == 1) {
    copy_box(b, &from_b.map, column, k, full);
  } else if constexpr (b_along_k) {
    constexpr int half = tile.columns / 2;
    copy_box_to_both(b + rank * half * row_bytes, &from_b.map, column + rank * half, k, full);
  } else {
#pragma unroll
    for (int panel = 0; panel < tile.columns / k_block<T>; ++panel) {
      const int first = column + panel * k_block<T>;
      if constexpr (tile.cluster == 1)
        copy_box(b + panel * panel_bytes, &from_b.map, k, first, full);
      else if (panel % 2 == rank)
        copy_box_to_both(b + panel * panel_bytes, &from_b.map, k, first, full);
    }
  }
}

#endif

}  // namespace iridium::hopper
