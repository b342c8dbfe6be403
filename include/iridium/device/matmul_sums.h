// Who has which sums of a tile product, and how they grow without tensor cores.
#pragma once

#include "iridium/device/matmul_stages.h"

namespace iridium {

/// The size of a tile product. Stages lie in block memory: `stages` × (`rows` + `columns`) ×
/// `depth` elements, at most `max_block_memory_bytes`.
struct TileProductShape {
  int rows = 64;      ///< of the tile of A × B; a multiple of 16
  int columns = 128;  ///< likewise
  int depth = 32;     ///< elements of K per stage; 16 or a multiple of 32 bytes
  int stages = 3;     ///< one is multiplied while the others are filled
  int threads = 128;  ///< of the block, in warps of 32
};

namespace detail {

/// How a block's warps, 32 threads each, share the tile: as near to squares as can be.
struct WarpGrid {
  int rows;     ///< of the tile, for a warp
  int columns;  ///< likewise
  int across;   ///< warps side by side
};
constexpr WarpGrid warp_grid_of(const TileProductShape& shape) {
  const int warps = shape.threads / 32;
  WarpGrid best = {};
  for (int across = 1; across <= warps; ++across) {
    const int down = warps / across;
    if (warps % across != 0 || shape.rows % (16 * down) != 0 || shape.columns % (16 * across) != 0)
      continue;
    const WarpGrid grid = {shape.rows / down, shape.columns / across, across};
    if (best.across == 0 || grid.rows + grid.columns < best.rows + best.columns) best = grid;
  }
  return best;
}

/// The sums of each thread: every eighth row of its warp's part, and in these runs of `run` columns
/// in turn with three other threads. With runs of two that is how tensor cores hold them.
template <TileProductShape shape, int run>
struct SumPlaces {
  static constexpr WarpGrid grid = warp_grid_of(shape);
  static_assert(shape.threads % 32 == 0 && grid.across > 0,
                "the tile's parts for the block's warps have multiples of 16 rows and columns");
  static constexpr int rows = grid.rows / 8;
  static constexpr int columns = grid.columns / 4;
  static constexpr int count = rows * columns;

  /// Of a thread's sum at [0][0].
  IR_DEVICE static int first_row(int thread) {
    return thread / 32 / grid.across * grid.rows + thread % 32 / 4;
  }
  IR_DEVICE static int first_column(int thread) {
    return thread / 32 % grid.across * grid.columns + thread % 4 * run;
  }
  /// From there to the sum at [i][j].
  IR_DEVICE static constexpr int row(int i) { return 8 * i; }
  IR_DEVICE static constexpr int column(int j) { return j / run * 4 * run + j % run; }
};

/// `Count` neighbours in a stage, as floats. They begin at a multiple of their size.
template <int Count, class T>
IR_DEVICE void read_run(float* to, const T* from) {
  struct alignas(Count * sizeof(T)) Run {
    T elements[Count];
  };
  const Run values = *reinterpret_cast<const Run*>(from);
  IR_UNROLLED for (int i = 0; i < Count; ++i) {
    to[i] = static_cast<float>(values.elements[i]);
  }
}

/// Two neighbours at once.
IR_DEVICE inline void write_pair(float* to, float first, float second) {
  struct alignas(2 * sizeof(float)) Pair {
    float first;
    float second;
  };
  *reinterpret_cast<Pair*>(to) = {first, second};
}

/// Adds the product of two staged tiles to the sums of one thread, in the order of K. B is as its
/// layout stores it.
template <class Places, int run, bool b_along_k, class StagedA, class StagedB, class T>
IR_DEVICE void add_product_by_thread(float* sums, const T* a, const T* b, int thread) {
  constexpr int step = 4;  // of K
  const int first_row = Places::first_row(thread);
  const int first_column = Places::first_column(thread);
  IR_ROLLED for (int k = 0; k < StagedA::columns; k += step) {
    float b_values[Places::columns][step];
    if constexpr (b_along_k) {
      IR_UNROLLED for (int j = 0; j < Places::columns; ++j) {
        read_run<step>(b_values[j], b + StagedB::place(first_column + Places::column(j), k));
      }
    } else {
      IR_UNROLLED for (int i = 0; i < step; ++i) {
        IR_UNROLLED for (int j = 0; j < Places::columns; j += run) {
          float values[run];
          read_run<run>(values, b + StagedB::place(k + i, first_column + Places::column(j)));
          IR_UNROLLED for (int c = 0; c < run; ++c) {
            b_values[j + c][i] = values[c];
          }
        }
      }
    }
    IR_UNROLLED for (int r = 0; r < Places::rows; ++r) {
      float a_values[step];
      read_run<step>(a_values, a + StagedA::place(first_row + Places::row(r), k));
      IR_UNROLLED for (int i = 0; i < step; ++i) {
        IR_UNROLLED for (int j = 0; j < Places::columns; ++j) {
          sums[r * Places::columns + j] += a_values[i] * b_values[j][i];
        }
      }
    }
  }
}

/// The part of a tile that matrices reach.
struct Filled {
  int rows;
  int columns;
};

/// The same for a whole tile by one thread, whose sums lie row by row. Only what is `filled` is
/// multiplied.
template <bool b_along_k, int columns, class StagedA, class StagedB, class T>
IR_DEVICE void add_product_by_block(float* sums, const T* a, const T* b, const Filled& filled) {
  constexpr int depth = StagedA::columns;
  // What a CPU's registers hold.
  constexpr int piece_rows = 4;
  constexpr int piece_columns = 8;
  alignas(64) float wide_a[StagedA::elements];
  alignas(64) float wide_b[StagedB::elements];
  constexpr int chunk = vector_elements<T>;
  const auto widen = [&](const T* from, auto to) {
    float values[chunk];
    for (int i = 0; i < chunk; ++i) values[i] = static_cast<float>(from[i]);
    for (int i = 0; i < chunk; ++i) to(i) = values[i];
  };
  const int rows_here = (filled.rows + piece_rows - 1) / piece_rows * piece_rows;
  const int columns_here = (filled.columns + piece_columns - 1) / piece_columns * piece_columns;
  for (int row = 0; row < rows_here; ++row)
    for (int k = 0; k < depth; k += chunk)
      widen(a + StagedA::place(row, k),
            [&](int i) -> float& { return wide_a[row * depth + k + i]; });
  const int b_rows = b_along_k ? columns_here : depth;
  const int b_columns = b_along_k ? depth : columns_here;
  for (int row = 0; row < b_rows; ++row)
    for (int column = 0; column < b_columns; column += chunk)
      widen(b + StagedB::place(row, column), [&](int i) -> float& {
        return wide_b[b_along_k ? (column + i) * columns + row : row * columns + column + i];
      });
  for (int row = 0; row < rows_here; row += piece_rows)
    for (int column = 0; column < columns_here; column += piece_columns) {
      float piece[piece_rows][piece_columns];
      float* const first = sums + row * columns + column;
      for (int r = 0; r < piece_rows; ++r)
        for (int c = 0; c < piece_columns; ++c) piece[r][c] = first[r * columns + c];
      for (int k = 0; k < depth; ++k)
        for (int r = 0; r < piece_rows; ++r)
          for (int c = 0; c < piece_columns; ++c)
            piece[r][c] += wide_a[(row + r) * depth + k] * wide_b[k * columns + column + c];
      for (int r = 0; r < piece_rows; ++r)
        for (int c = 0; c < piece_columns; ++c) first[r * columns + c] = piece[r][c];
    }
}

}  // namespace detail

}  // namespace iridium
