// How many blocks may wait on a GPU at the same time, and how much of it they leave to others.
#pragma once

#include <algorithm>

#include "iridium/device/block.h"

namespace iridium {

/// A GPU and the ranks on it. Under MPS with a share of the processors, they are those of the
/// share.
struct SharedGpu {
  int processors = 0;
  int major = 0;  ///< of the compute capability
  int ranks = 1;
};

/// How many blocks of the library's own kernels fit a processor that runs so many threads.
inline int library_blocks_per_processor(int threads) {
  return threads / Block::gpu_threads / 2;
}

/// One grid's part of the `held` blocks that the GPU holds, when every rank has as many grids at
/// the same time as there are `lanes`.
inline int shared_blocks(const SharedGpu& gpu, int held, int lanes) {
  return held / gpu.ranks / lanes;
}

/// How many blocks one rank's grid may have so that as many grids of every rank as there are
/// `lanes` run at the same time.
inline int resident_blocks(const SharedGpu& gpu, int per_processor, int lanes) {
  return shared_blocks(gpu, gpu.processors * per_processor, lanes);
}

/// The processors that waiting blocks leave free. A cluster of 8 blocks with a processor to each
/// (the largest that every GPU with clusters takes) starts only where one of the GPU's groups of
/// processors, its GPCs, has 8 free ones: that is certain when 7 in each and one more are free,
/// wherever the waiting blocks are. Before Hopper there are no clusters, and one is enough.
inline int processors_for_compute(const SharedGpu& gpu) {
  if (gpu.major < 9) return 1;
  constexpr int largest_cluster = 8;
  // Both bounds are those of the GPUs known so far.
  constexpr int smallest_group = 12;
  const int most_groups = gpu.major < 12 ? 8 : 12;
  const int groups = std::clamp(gpu.processors / smallest_group, 1, most_groups);
  return (largest_cluster - 1) * groups + 1;
}

/// How many blocks one rank's grid may have so that there is room for a kernel that computes while
/// all other grids, `lanes` of every rank, wait for it. 0: however few, there is none.
inline int blocks_beside_compute(const SharedGpu& gpu, int lanes) {
  const int free = std::max(0, gpu.processors - processors_for_compute(gpu));
  const int waiting_grids = gpu.ranks * lanes - 1;
  return waiting_grids == 0 ? gpu.processors : free / waiting_grids;
}

}  // namespace iridium
