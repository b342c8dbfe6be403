// The matrix product in tiles that blocks multiply from their memory: on every device.
#pragma once

#include "iridium/device/matmul.h"
#include "matmul/epilogue.h"

namespace iridium {

/// Takes all block memory that a kernel can have.
template <TileProductNumber T>
inline constexpr TileProductShape large_tile = {.rows = 128,
                                                .columns = 128,
                                                .depth = 64 / static_cast<int>(sizeof(T)),
                                                .stages = 3,
                                                .threads = 256};
/// For products with few tiles.
template <TileProductNumber T>
inline constexpr TileProductShape small_tile = {.rows = 64,
                                                .columns = 64,
                                                .depth = 64 / static_cast<int>(sizeof(T)),
                                                .stages = 3,
                                                .threads = 128};

/// D = A × B. The bits of an element depend on its row of A and its column of B alone, not on the
/// tile's shape.
template <TileProductNumber T, MatmulLayout layout, TileProductShape shape>
struct TiledProduct {
  using Product = TileProduct<T, layout, shape>;
  using Grid = TileGrid<shape.rows, shape.columns>;
  /// Sums and operands of float elements need all registers.
  static constexpr int blocks_per_processor = std::same_as<T, float> ? 1 : 512 / shape.threads;

  Matrix<const T> a;
  Matrix<const T> b;
  T* d;
  std::size_t d_pitch;
  Epilogue epilogue;

  IR_DEVICE void operator()(typename Product::ABlock block) const {
    Product product(block);
    const Grid grid(a.rows, product_columns(), TileOrder::swizzled);
    for (auto i = static_cast<std::size_t>(block.index()); i < grid.count();
         i += static_cast<std::size_t>(block.count())) {
      const auto corner = grid.at(i);
      product.run(a, b, corner.row, corner.column);
      product.for_each_eight([&](int row, int column, const float* sums) {
        store_eight(block.seat(), corner.row + static_cast<std::size_t>(row),
                    corner.column + static_cast<std::size_t>(column), sums);
      });
    }
  }

 private:
  IR_DEVICE std::size_t product_columns() const {
    return layout == MatmulLayout::nk ? b.rows : b.columns;
  }

  /// Finishes eight sums side by side, and writes what becomes of them.
  IR_DEVICE void store_eight(const Seat* seat, std::size_t row, std::size_t column,
                             const float* sums) const {
    if (row >= a.rows || column >= product_columns()) return;
    const std::size_t left = product_columns() - column;
    const int there = left < 8 ? static_cast<int>(left) : 8;
    alignas(16) T results[8];
    IR_UNROLLED for (int i = 0; i < 8; ++i) {
      const std::size_t at = column + static_cast<std::size_t>(i);
      if (i < there && !epilogue.gated) results[i] = T(epilogue.finished<T>(sums[i], row, at));
      if (i + 1 < there && i % 2 == 0 && epilogue.gated)
        results[i / 2] = T(epilogue.finished_pair<T>(sums[i], sums[i + 1], row, at));
    }
    T* const to = d + row * d_pitch + (epilogue.gated ? column / 2 : column);
    const int count = epilogue.gated ? there / 2 : there;
    constexpr int vector = vector_elements<T>;
    const bool vectors = count % vector == 0 && target::allows_vectors(seat, to);
    IR_UNROLLED for (int i = 0; i < 8; ++i) {
      if (vectors && i % vector == 0 && i < count)
        target::store_vector<Cache::normal>(to + i, results + i);
      if (!vectors && i < count) to[i] = results[i];
    }
  }
};

}  // namespace iridium
