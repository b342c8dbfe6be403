// Matrix products.
#pragma once

#include <span>
#include <string_view>
#include <type_traits>

#include "iridium/device/matrix.h"
#include "iridium/numbers.h"
#include "iridium/stream.h"

namespace iridium {

/// How it is done; docs/matmul.md describes each.
enum class MatmulAlgorithm {
  automatic,       ///< by shape and device
  simple,          ///< a plain loop: on every device, any shape
  narrow,          ///< up to 16 rows, B as [N,K]: on NVIDIA GPUs
  hopper_64x128,   ///< on Hopper, tiles of 64 × 128 elements of D
  hopper_128x128,  ///< on Hopper, tiles of 128 × 128; pairs of blocks share what they load of B
  hopper_128x256,  ///< on Hopper, tiles of 128 × 256
};

/// All of them, in this order.
std::span<const MatmulAlgorithm> matmul_algorithms();
std::string_view name(MatmulAlgorithm algorithm);
/// The algorithm called `text`; throws `invalid_argument` with the known names.
MatmulAlgorithm parse_matmul_algorithm(std::string_view text);

/// How B is stored.
enum class MatmulLayout {
  kn,  ///< K rows of N elements
  nk,  ///< N rows of K elements: transposed, as layers store their weights
};

/// Both, in this order.
std::span<const MatmulLayout> matmul_layouts();
/// "kn".
std::string_view name(MatmulLayout layout);
/// The layout called `text`; throws `invalid_argument` with the known names.
MatmulLayout parse_matmul_layout(std::string_view text);

struct MatmulOptions {
  MatmulAlgorithm algorithm = MatmulAlgorithm::automatic;
  MatmulLayout layout = MatmulLayout::kn;
  /// The bits of a row do not depend on the number of rows: `automatic` chooses the same kernel for
  /// any number. Slower for few rows.
  bool invariant = false;
};

namespace detail {

/// A matrix, its type forgotten; the pitch is in elements.
struct MatmulOperand {
  const void* data;
  std::size_t rows;
  std::size_t columns;
  std::size_t pitch;
};

struct MatmulBuffers {
  MatmulOperand d;
  MatmulOperand a;
  MatmulOperand b;
  void* d_data;  ///< `d.data`, to be written
  DataType type;
};

template <class T>
MatmulBuffers matmul_buffers(const Matrix<T>& d, const Matrix<const T>& a,
                             const Matrix<const T>& b) {
  return {{d.data, d.rows, d.columns, d.pitch},
          {a.data, a.rows, a.columns, a.pitch},
          {b.data, b.rows, b.columns, b.pitch},
          d.data,
          data_type_of<T>()};
}

void matmul(StreamRef& stream, const MatmulBuffers& buffers, const MatmulOptions& options);

}  // namespace detail

/// D = A × B, accumulated in fp32 and rounded once. A has M rows and K columns, D has M rows and N
/// columns, and B has K rows and N columns, or with `MatmulLayout::nk` N rows and K columns. Each
/// of M, N and K may be 0; where K is, D becomes zero. D overlaps neither A nor B.
///
///     // 16 rows of 8192 elements times weights stored as [3584, 8192]
///     matmul(stream, Matrix<bf16>{d, 16, 3584, 3584}, {a, 16, 8192, 8192}, {b, 3584, 8192, 8192},
///            {.layout = MatmulLayout::nk});
///
/// Not collective. Returns at once; can be captured. Kernels on the stream's device must be able to
/// reach the matrices. Every run gives the same bits; other devices, and matrices that begin at
/// other offsets from multiples of 16 bytes, may give others (docs/matmul.md). Throws before
/// anything is launched: `invalid_argument` for matrices or options that cannot be, and
/// `unsupported` for an algorithm that the device does not have.
template <HalfNumber T>
void matmul(StreamRef& stream, const Matrix<T>& d, const std::type_identity_t<Matrix<const T>>& a,
            const std::type_identity_t<Matrix<const T>>& b, const MatmulOptions& options = {}) {
  detail::matmul(stream, detail::matmul_buffers<T>(d, a, b), options);
}

}  // namespace iridium
