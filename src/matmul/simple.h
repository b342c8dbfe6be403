// The matrix product as a plain loop: anywhere, of any shape.
#pragma once

#include "iridium/device/matrix.h"

namespace iridium {

/// D = A × B. Each element is the sum over K in order, in float: its bits depend on its row of A
/// and its column of B alone.
template <HalfNumber T, bool b_along_k>
struct SimpleProduct {
  static constexpr int rows = 32;
  static constexpr int columns = 128;
  // What one thread has at a time.
  static constexpr int piece_rows = 4;
  static constexpr int piece_columns = 8;
  static constexpr int pieces = (rows / piece_rows) * (columns / piece_columns);
  using ABlock = BlockOf<pieces>;

  Matrix<T> d;
  Matrix<const T> a;
  const T* b;
  std::size_t b_pitch;
  std::size_t depth;

  IR_DEVICE void operator()(ABlock block) const {
    const TileGrid<rows, columns> grid(d, TileOrder::swizzled);
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
    if (row >= d.rows || column >= d.columns) return;
    // Beyond the last row and column those are read again; what comes of it is not stored.
    const T* from_a[piece_rows];
    const T* from_b[piece_columns];
    for (int r = 0; r < piece_rows; ++r)
      from_a[r] = a.at(smaller(row + static_cast<std::size_t>(r), d.rows - 1), 0);
    for (int c = 0; c < piece_columns; ++c) {
      const std::size_t at = smaller(column + static_cast<std::size_t>(c), d.columns - 1);
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
      for (int c = 0; c < piece_columns; ++c) {
        const std::size_t at_row = row + static_cast<std::size_t>(r);
        const std::size_t at_column = column + static_cast<std::size_t>(c);
        if (at_row < d.rows && at_column < d.columns) *d.at(at_row, at_column) = T(sums[r][c]);
      }
  }
};

}  // namespace iridium
