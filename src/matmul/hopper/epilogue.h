// From a warpgroup's sums to D.
#pragma once

#include "matmul/epilogue.h"
#include "matmul/hopper/geometry.h"
#include "matmul/hopper/instructions.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace iridium::hopper {

/// D, and what of A × B there is.
template <class D>
struct Output {
  const TensorMap* map;  ///< null: sums are finished one by one
  const Epilogue& epilogue;
  const Matrix<D>& d;
  int rows;
  int columns;
};

/// Where four sums lie, in rows of `columns`: so that neither threads with rows below each other
/// nor those with sums beside each other meet in a bank.
template <int columns>
__device__ __forceinline__ std::uint32_t place_of_sums(int row, int four) {
  return static_cast<std::uint32_t>(row * columns * 4 + (four ^ row % 8) * 16);
}

/// Writes a warpgroup's sums to the block's memory, from (row, column) on.
template <int columns, int accumulators>
__device__ __forceinline__ void put_sums(std::uint32_t to, const float* sums, int row, int column) {
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < accumulators / 2; ++i) {
    const int four = column / 4 + i / 2 * 2 + lane % 4 / 2;
    const int below = row + warp * 16 + lane / 4 + i % 2 * 8;
    store_pair(to + place_of_sums<columns>(below, four) + lane % 2 * 8, sums[2 * i],
               sums[2 * i + 1]);
  }
}

/// Finishes `rows` rows of sums, from `first` on, that threads of this block put into `parts`
/// blocks of the cluster; they are added in the blocks' order. Row 0 is at (row, column) of A × B.
template <int columns, int parts, class D>
__device__ __forceinline__ void store_rows(const Output<D>& out, std::uint32_t from, int first,
                                           int rows, int row, int column, int thread, int threads) {
  constexpr int eights = columns / 8;
#pragma unroll 1
  for (int i = thread; i < rows * eights; i += threads) {
    const int below = first + i / eights;
    const int beside = i % eights;
    if (row + below >= out.rows || column + beside * 8 >= out.columns) continue;
    float sums[8] = {};
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      const std::uint32_t memory = parts == 1 ? from : address_at(from, part);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float4 four = load_four(memory + place_of_sums<columns>(below, 2 * beside + half));
        sums[4 * half] += four.x;
        sums[4 * half + 1] += four.y;
        sums[4 * half + 2] += four.z;
        sums[4 * half + 3] += four.w;
      }
    }
    store_finished(nullptr, out.epilogue, out.d, static_cast<std::size_t>(out.columns),
                   static_cast<std::size_t>(row + below),
                   static_cast<std::size_t>(column + beside * 8), sums);
  }
}

/// Writes 64 × 64 of a warpgroup's sums to a panel in the block's memory, with the swizzle.
template <HalfNumber D>
__device__ __forceinline__ void fill_panel(std::uint32_t panel, const float* sums) {
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint32_t row = panel + (warp * 16 + lane % 16) * row_bytes;
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    const float* s = sums + 8 * pair;
    const int chunk = (2 * pair + lane / 16) ^ (lane % 8);
    store_matrices(row + chunk * 16, pack<D>(s[0], s[1]), pack<D>(s[2], s[3]), pack<D>(s[4], s[5]),
                   pack<D>(s[6], s[7]));
  }
}

/// Writes a warpgroup's sums to D from (row, column) on, 64 columns at a time. `staging`: two
/// panels of the warpgroup's own. `panel` is the next one to fill.
template <class D, int accumulators>
__device__ __forceinline__ void store_sums(const float (&sums)[accumulators], const Output<D>& out,
                                           std::uint32_t staging, int& panel, int row, int column,
                                           int group) {
  const int thread = static_cast<int>(threadIdx.x) % 128;
#pragma unroll
  for (int part = 0; part < accumulators / 32; ++part) {
    const int first = column + part * 64;
    if (row >= out.rows || first >= out.columns) return;
    if (out.map == nullptr) {
      sync_group(group);
      put_sums<64, 32>(staging, sums + part * 32, 0, 0);
      sync_group(group);
      store_rows<64, 1>(out, staging, 0, 64, row, first, thread, 128);
      continue;
    }
    if constexpr (HalfNumber<D>) {
      const std::uint32_t to = staging + panel * panel_bytes;
      panel ^= 1;
      // The store before the last one was from the panel that is filled now.
      if (thread == 0) await_stores_read<1>();
      sync_group(group);
      fill_panel<D>(to, sums + part * 32);
      order_before_copies();
      sync_group(group);
      if (thread == 0) store_box(out.map, to, row, first);
    }
  }
}

}  // namespace iridium::hopper

#endif
