// The shape of a Hopper kernel: what a block computes, and how its memory is divided.
#pragma once

#include <algorithm>
#include <cstdint>

#include "iridium/device/compiler.h"

namespace iridium::hopper {

inline constexpr int row_bytes = 128;  ///< of K in a stage: a row of the swizzle
/// Elements of K in a stage.
template <class T>
inline constexpr int k_block = row_bytes / static_cast<int>(sizeof(T));
inline constexpr int panel_rows = 64;
inline constexpr int panel_bytes = panel_rows * row_bytes;
/// All that a block can have.
inline constexpr int most_block_bytes = 232448;

/// The elements of A × B that a block computes at a time, by two warpgroups. They lie below each
/// other, 64 rows each, or beside each other.
struct TileShape {
  int row_groups;  ///< warpgroups below each other: 1 or 2
  int columns;
  int cluster;      ///< blocks below each other that share what they read of B: 1 or 2
  int k_parts = 1;  ///< blocks of a cluster that have the same tile, and a part of K each

  IR_DEVICE constexpr int rows() const { return 64 * row_groups; }
  IR_DEVICE constexpr int blocks() const { return cluster * k_parts; }  ///< of a cluster
};

template <TileShape tile>
struct Geometry {
  static constexpr int groups = 2;  ///< warpgroups that multiply
  static constexpr int column_groups = groups / tile.row_groups;
  static constexpr int group_columns = tile.columns / column_groups;
  static constexpr int accumulators = group_columns / 2;  ///< of a thread, for 64 rows
  static constexpr int threads = 128 * (groups + 1);      ///< the first warpgroup loads
  static constexpr int stage_bytes = (tile.rows() + tile.columns) * row_bytes;
  /// In flight to D: of each warpgroup two panels, or 64 × 64 sums. Where blocks have parts of
  /// K, sums lie where stages were.
  static constexpr int staging_bytes = tile.k_parts > 1 ? 0 : groups * 2 * panel_bytes;
  static constexpr int control_bytes = 512;
  static constexpr int alignment = 1024;  ///< of the swizzle
  static constexpr int stages =
      (most_block_bytes - alignment - control_bytes - staging_bytes) / stage_bytes;
  static constexpr int block_bytes =
      alignment + control_bytes + staging_bytes + stages * stage_bytes;

  static_assert(tile.cluster == 1 || (tile.cluster == 2 && tile.k_parts == 1));
  static_assert(tile.row_groups == 1 || tile.row_groups == 2);
  static_assert(group_columns % 64 == 0 && stage_bytes % alignment == 0);
  static_assert(stages >= 2 && 2 * stages * sizeof(std::uint64_t) <= control_bytes);
  static_assert(tile.rows() % tile.k_parts == 0 &&
                tile.rows() * tile.columns * sizeof(float) <= stages * stage_bytes);
};

inline constexpr TileShape tile_64x128 = {.row_groups = 1, .columns = 128, .cluster = 1};
inline constexpr TileShape tile_128x128 = {.row_groups = 2, .columns = 128, .cluster = 2};
inline constexpr TileShape tile_128x256 = {.row_groups = 2, .columns = 256, .cluster = 1};
inline constexpr TileShape tile_64x128_k4 = {
    .row_groups = 1, .columns = 128, .cluster = 1, .k_parts = 4};
inline constexpr TileShape tile_128x128_k2 = {
    .row_groups = 2, .columns = 128, .cluster = 1, .k_parts = 2};

}  // namespace iridium::hopper
