// The matrix product as a plain loop: anywhere, of any shape.
#pragma once

#include "iridium/device/matrix.h"
#include "matmul/epilogue.h"

namespace iridium {

/// D = A × B. Each element is the sum over K in order, in float: its bits depend on its row of A
/// and its column of B alone.
template <MatmulInput T, MatmulResult<T> D, bool b_along_k>
struct SimpleProduct {
  static constexpr int rows = 32;
  static constexpr int columns = 128;
  // What one thread has at a time.
  static constexpr int piece_rows = 4;
  static constexpr int piece_columns = 8;
  static constexpr int pieces = (rows / piece_rows) * (columns / piece_columns);
  using ABlock = BlockOf<pieces>;

  Matrix<const T> a;
  const T* b;
  std::size_t b_pitch;
  std::size_t columns_of_b;
  std::size_t depth;
  D* d;
  std::size_t d_pitch;
  Epilogue epilogue;

  IR_DEVICE void operator()(ABlock block) const {
    const TileGrid<rows, columns> grid(a.rows, columns_of_b, TileOrder::swizzled);
    for (std::size_t i = static_cast<std::size_t>(block.index()); i < grid.count();
         i += static_cast<std::size_t>(block.count())) {
      const auto corner = grid.at(i);
      block.template share<pieces>(pieces, [&](int piece) {
        constexpr int across = columns / piece_columns;
        multiply_piece(corner.row + static_cast<std::size_t>(piece / across * piece_rows),
                       corner.column + static_cast<std::size_t>(piece % across * piece_columns));
      });
    }
  }

 private:
  IR_DEVICE static std::size_t smaller(std::size_t x, std::size_t y) { return x < y ? x : y; }

  IR_DEVICE void multiply_piece(std::size_t row, std::size_t column) const {
    if (row >= a.rows || column >= columns_of_b) return;
    // Beyond the last row and column those are read again; what comes of it is not stored.
    const T* from_a[piece_rows];
    const T* from_b[piece_columns];
    for (int r = 0; r < piece_rows; ++r)
      from_a[r] = a.at(smaller(row + static_cast<std::size_t>(r), a.rows - 1), 0);
    for (int c = 0; c < piece_columns; ++c) {
      const std::size_t at = smaller(column + static_cast<std::size_t>(c), columns_of_b - 1);
      from_b[c] = b + (b_along_k ? at * b_pitch : at);
    }
    float sums[piece_rows][piece_columns] = {};
    for (std::size_t k = 0; k < depth; ++k) {
      float values[piece_columns];
      for (int c = 0; c < piece_columns; ++c)
        values[c] = static_cast<float>(from_b[c][b_along_k ? k : k * b_pitch]);
      for (int r = 0; r < piece_rows; ++r) {
        const auto factor = static_cast<float>(from_a[r][k]);
        for (int c = 0; c < piece_columns; ++c) sums[r][c] += factor * values[c];
      }
    }
    for (int r = 0; r < piece_rows; ++r)
      if (const std::size_t at = row + static_cast<std::size_t>(r); at < a.rows)
        store_row(sums[r], at, column);
  }

  IR_DEVICE void store_row(const float (&sums)[piece_columns], std::size_t row,
                           std::size_t column) const {
    for (int c = 0; c < piece_columns; ++c) {
      const std::size_t at = column + static_cast<std::size_t>(c);
      if (at >= columns_of_b) return;
      if (!epilogue.gated)
        d[row * d_pitch + at] = D(epilogue.finished<D>(sums[c], row, at));
      else if (c % 2 == 0)
        d[row * d_pitch + at / 2] = D(epilogue.finished_pair<D>(sums[c], sums[c + 1], row, at));
    }
  }
};

}  // namespace iridium
