// The extents of a matrix product.
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <string_view>

namespace iridium {

/// A of M × K times B of K × N.
struct MatmulShape {
  std::size_t rows = 0;     ///< M
  std::size_t columns = 0;  ///< N
  std::size_t depth = 0;    ///< K

  auto operator<=>(const MatmulShape&) const = default;

  /// Multiplications and additions.
  double flops() const {
    return 2 * static_cast<double>(rows) * static_cast<double>(columns) *
           static_cast<double>(depth);
  }
  /// Of all three matrices.
  std::size_t elements() const { return rows * depth + depth * columns + rows * columns; }
};

/// "4096x3584x8192": M, N and K.
std::string name(const MatmulShape& shape);
/// The shape written so; throws `invalid_argument`, with an example, for what is none. M, N and K
/// are from 1 to 2^30.
MatmulShape parse_matmul_shape(std::string_view text);

}  // namespace iridium
