#pragma once

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
};

/// What `staged` multiplies by at a time: a `piece_depth` is a multiple of it.
inline constexpr std::size_t staged_depth_unit = 64;

void launch_staged_gather_product(const GatherProduct& call);

KernelList all_gather_matmul_kernels();

}  // namespace iridium
