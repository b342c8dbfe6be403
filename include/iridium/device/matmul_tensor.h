// Tile products by the tensor cores of NVIDIA GPUs.
#pragma once

#include "iridium/device/matmul_sums.h"

#if IR_ON_CUDA

namespace iridium::detail {

/// What a warp loads of block memory at once: four matrices of 8 × 8 elements of 16 bits. The
/// address is of a row: lanes 0 to 7 name those of the first matrix, 8 to 15 of the second, and so
/// on. `transposed`: a lane gets elements of a column.
template <bool transposed>
__device__ __forceinline__ void load_matrices(std::uint32_t (&to)[4], target::BlockAddress from) {
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

template <HalfNumber T>
inline constexpr char tensor_types[] = ".bf16.bf16";
template <>
inline constexpr char tensor_types<fp16>[] = ".f16.f16";

/// A product of 16 × 16 elements of A and 16 × 8 of B, added to four sums of each lane: at (lane /
/// 4, 2 * (lane % 4)), the column behind it, and the same eight rows further down.
template <HalfNumber T>
__device__ __forceinline__ void add_tensor_product(float& s0, float& s1, float& s2, float& s3,
                                                   const std::uint32_t (&a)[4], std::uint32_t b0,
                                                   std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32%10.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(s0), "+f"(s1), "+f"(s2), "+f"(s3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "C"(tensor_types<T>));
}

/// Adds the product of two staged tiles to the sums of this thread, 16 elements of K at a time, in
/// order. B is as its layout stores it.
template <class Places, bool b_along_k, class StagedA, class StagedB, HalfNumber T>
__device__ __forceinline__ void add_product_by_warp(float* sums, T* a, T* b) {
  constexpr int step = 16;
  constexpr int row_parts = Places::grid.rows / 16;
  constexpr int column_parts = Places::grid.columns / 16;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp / Places::grid.across * Places::grid.rows;
  const int column = warp % Places::grid.across * Places::grid.columns;
  const target::BlockAddress a_stage = target::block_address(a);
  const target::BlockAddress b_stage = target::block_address(b);
#pragma unroll
  for (int k = 0; k < StagedA::columns; k += step) {
    std::uint32_t a_parts[row_parts][4];
#pragma unroll
    for (int i = 0; i < row_parts; ++i)
      load_matrices<false>(
          a_parts[i],
          a_stage + sizeof(T) * StagedA::place(row + 16 * i + lane % 16, k + lane / 16 * 8));
#pragma unroll
    for (int j = 0; j < column_parts; ++j) {
      std::uint32_t b_part[4];
      const int at = column + 16 * j;
      const int place = b_along_k
                            ? StagedB::place(at + lane / 16 * 8 + lane % 8, k + lane / 8 % 2 * 8)
                            : StagedB::place(k + lane % 16, at + lane / 16 * 8);
      load_matrices<!b_along_k>(b_part, b_stage + sizeof(T) * place);
#pragma unroll
      for (int i = 0; i < row_parts; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float* const upper = sums + 2 * i * Places::columns + 4 * j + 2 * half;
          float* const lower = upper + Places::columns;
          add_tensor_product<T>(upper[0], upper[1], lower[0], lower[1], a_parts[i],
                                b_part[2 * half], b_part[2 * half + 1]);
        }
    }
  }
}

}  // namespace iridium::detail

#endif
