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
  Matrix<T> d;
  Epilogue epilogue;

  IR_DEVICE void operator()(typename Product::ABlock block) const {
    Product product(block);
    const Grid grid(a.rows, product_columns(), TileOrder::swizzled);
    for (auto i = static_cast<std::size_t>(block.index()); i < grid.count();
         i += static_cast<std::size_t>(block.count())) {
      const auto corner = grid.at(i);
      product.run(a, b, corner.row, corner.column);
      product.for_each_eight([&](std::size_t row, std::size_t column, const float* sums) {
        store_finished(block.seat(), epilogue, d, product_columns(), corner.row + row,
                       corner.column + column, sums);
      });
    }
  }

 private:
  IR_DEVICE std::size_t product_columns() const {
    return layout == MatmulLayout::nk ? b.rows : b.columns;
  }
};

}  // namespace iridium
