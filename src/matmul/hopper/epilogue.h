// From a warpgroup's sums to D.
#pragma once

#include "matmul/hopper/geometry.h"
#include "matmul/hopper/instructions.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace iridium::hopper {

/// D, and what of it there is.
template <HalfNumber T>
struct Output {
  const TensorMap* map;  ///< null: D is nothing that tensor copies can write
  T* data;
  std::size_t pitch;
  int rows;
  int columns;
};

/// Writes 64 × 64 of a warpgroup's sums to a panel in the block's memory, with the swizzle.
template <HalfNumber T>
__device__ __forceinline__ void fill_panel(std::uint32_t panel, const float* sums) {
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint32_t row = panel + (warp * 16 + lane % 16) * row_bytes;
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    const float* s = sums + 8 * pair;
    const int chunk = (2 * pair + lane / 16) ^ (lane % 8);
    store_matrices(row + chunk * 16, pack<T>(s[0], s[1]), pack<T>(s[2], s[3]), pack<T>(s[4], s[5]),
                   pack<T>(s[6], s[7]));
  }
}

/// Copies a panel element by element.
template <HalfNumber T>
__device__ __forceinline__ void copy_panel(const Output<T>& out, const std::byte* panel, int row,
                                           int column) {
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x) % 128; i < panel_rows * 64; i += 128) {
    const int down = i / 64;
    const int across = i % 64;
    if (row + down >= out.rows || column + across >= out.columns) continue;
    const int chunk = (across / 8) ^ (down % 8);
    out.data[static_cast<std::size_t>(row + down) * out.pitch + column + across] =
        reinterpret_cast<const T*>(panel + down * row_bytes + chunk * 16)[across % 8];
  }
}

/// Writes a warpgroup's sums to D from (row, column) on, panel by panel. `panel`, of two at
/// `staging`, is the next one to fill.
template <HalfNumber T, int accumulators>
__device__ __forceinline__ void store_sums(const float (&sums)[accumulators], const Output<T>& out,
                                           std::byte* staging, int& panel, int row, int column,
                                           int group) {
  const bool is_leader = threadIdx.x % 128 == 0;
#pragma unroll
  for (int part = 0; part < accumulators / 32; ++part) {
    const int first = column + part * 64;
    if (row >= out.rows || first >= out.columns) return;
    std::byte* const to = staging + panel * panel_bytes;
    panel ^= 1;
    // The store before the last one was from the panel that is filled now.
    if (is_leader) await_stores_read<1>();
    sync_group(group);
    fill_panel<T>(shared_address(to), sums + part * 32);
    order_before_copies();
    sync_group(group);
    if (out.map == nullptr) {
      copy_panel(out, to, row, first);
      sync_group(group);
    } else if (is_leader) {
      store_box(out.map, shared_address(to), row, first);
    }
  }
}

}  // namespace iridium::hopper

#endif
