// Matrix products.
#pragma once

#include <span>
#include <string_view>
#include <type_traits>

#include "iridium/device/e4m3.h"
#include "iridium/device/matmul_layout.h"
#include "iridium/device/matrix.h"
#include "iridium/numbers.h"
#include "iridium/stream.h"

namespace iridium {

/// How it is done; docs/matmul.md describes each.
enum class MatmulAlgorithm {
  automatic,          ///< by shape and device
  simple,             ///< a plain loop: on every device, any shape
  tiled,              ///< tiles from block memory: on every device, any shape; not e4m3
  narrow,             ///< up to 16 rows, B as [N,K]: on NVIDIA GPUs
  hopper_64x128,      ///< on Hopper, tiles of 64 × 128 elements of D
  hopper_128x128,     ///< on Hopper, tiles of 128 × 128; pairs of blocks share what they load of B
  hopper_128x256,     ///< on Hopper, tiles of 128 × 256
  hopper_64x128_k4,   ///< as hopper_64x128, with K divided between four blocks of a cluster
  hopper_128x128_k2,  ///< on Hopper, tiles of 128 × 128, with K divided between two
  cublas,             ///< cuBLAS, where it is installed; no epilogue, not e4m3
};

/// All of them, in this order.
std::span<const MatmulAlgorithm> matmul_algorithms();
std::string_view name(MatmulAlgorithm algorithm);
/// The algorithm called `text`; throws `invalid_argument` with the known names.
MatmulAlgorithm parse_matmul_algorithm(std::string_view text);

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
  /// Matrices of float may be multiplied as tf32, with 10 bits of each element's fraction.
  bool tf32 = false;
};

/// The element types of A and B.
template <class T>
concept MatmulInput = HalfNumber<T> || std::same_as<T, float> || std::same_as<T, e4m3>;

/// The element types that D can have: that of A and B, or fp16 and bf16 where theirs is e4m3.
template <class D, class T>
concept MatmulResult =
    MatmulInput<T> && (std::same_as<T, e4m3> ? HalfNumber<D> : std::same_as<D, T>);

/// A function of each element.
enum class MatmulActivation {
  none,
  relu,  ///< max(x, 0)
  gelu,  ///< x × Φ(x), by the error function
  silu,  ///< x / (1 + exp(-x))
};

/// All of them, in this order.
std::span<const MatmulActivation> matmul_activations();
/// "relu".
std::string_view name(MatmulActivation activation);
/// The activation called `text`; throws `invalid_argument` with the known names.
MatmulActivation parse_matmul_activation(std::string_view text);

/// Factors in memory that kernels can reach: of all elements, or one of each row of A or column of
/// B.
struct MatmulScales {
  const float* data = nullptr;  ///< null: none
  bool each = false;            ///< not one for all
};

/// What a bias has elements for.
enum class MatmulBias { columns, rows };

/// What becomes of the sums in fp32, before they are rounded. With x = scale × the factor of A ×
/// the factor of B × (A × B) + bias, an element of D is activation(x) + residual. Memory is read
/// when the product runs.
template <class D>
struct MatmulEpilogue {
  float scale = 1;
  MatmulScales a_scales = {};  ///< one, or M
  MatmulScales b_scales = {};  ///< one, or N
  const D* bias = nullptr;     ///< N or M elements; null: none
  MatmulBias bias_along = MatmulBias::columns;
  MatmulActivation activation = MatmulActivation::none;
  /// D has N / 2 columns, activation(x of column 2 j) × (x of column 2 j + 1) + residual: the gate
  /// and what passes it take turns in B.
  bool gated = false;
  Matrix<const D> residual = {};  ///< as many rows and columns as D; may be D; no data: none
};

namespace detail {

/// A matrix, its type forgotten; the pitch is in elements.
struct MatmulOperand {
  const void* data;
  std::size_t rows;
  std::size_t columns;
  std::size_t pitch;
};
template <class T>
MatmulOperand matmul_operand(const Matrix<T>& matrix) {
  return {matrix.data, matrix.rows, matrix.columns, matrix.pitch};
}

enum class MatmulType { fp16, bf16, fp32, e4m3 };

template <class T>
inline constexpr MatmulType matmul_type = std::same_as<T, fp16>   ? MatmulType::fp16
                                          : std::same_as<T, bf16> ? MatmulType::bf16
                                          : std::same_as<T, e4m3> ? MatmulType::e4m3
                                                                  : MatmulType::fp32;

/// A product, its types forgotten.
struct MatmulCall {
  MatmulOperand d;
  MatmulOperand a;
  MatmulOperand b;
  void* d_data;  ///< `d.data`, to be written
  MatmulType type;
  MatmulType result;
  float scale;
  MatmulScales a_scales;
  MatmulScales b_scales;
  const void* bias;
  MatmulBias bias_along;
  MatmulActivation activation;
  bool gated;
  MatmulOperand residual;
};

template <class D, class T>
MatmulCall matmul_call(const Matrix<D>& d, const Matrix<const T>& a, const Matrix<const T>& b,
                       const MatmulEpilogue<D>& epilogue) {
  return {.d = matmul_operand(d),
          .a = matmul_operand(a),
          .b = matmul_operand(b),
          .d_data = d.data,
          .type = matmul_type<T>,
          .result = matmul_type<D>,
          .scale = epilogue.scale,
          .a_scales = epilogue.a_scales,
          .b_scales = epilogue.b_scales,
          .bias = epilogue.bias,
          .bias_along = epilogue.bias_along,
          .activation = epilogue.activation,
          .gated = epilogue.gated,
          .residual = matmul_operand(epilogue.residual)};
}

void matmul(StreamRef& stream, const MatmulCall& call, const MatmulOptions& options);

}  // namespace detail

/// D = A × B, accumulated in fp32 and rounded once, with what `epilogue` says done in between. A
/// has M rows and K columns, D has M rows and N columns, and B has K rows and N columns, or with
/// `MatmulLayout::nk` N rows and K columns. Each of M, N and K may be 0; where K is, sums are zero.
/// D overlaps nothing that is read, unless it is the residual.
///
///     // 16 rows of 8192 elements times weights stored as [3584, 8192]
///     matmul(stream, Matrix<bf16>{d, 16, 3584, 3584}, {a, 16, 8192, 8192}, {b, 3584, 8192, 8192},
///            {.layout = MatmulLayout::nk});
///
/// Not collective. Returns at once; can be captured. Kernels on the stream's device must be able to
/// reach all memory. Every run gives the same bits, wherever the matrices lie; other devices may
/// give others (docs/matmul.md). Throws before anything is launched: `invalid_argument` for
/// matrices or options that cannot be, and `unsupported` for an algorithm that the device does not
/// have.
template <class D>
  requires HalfNumber<D> || std::same_as<D, float>
void matmul(StreamRef& stream, const Matrix<D>& d, const std::type_identity_t<Matrix<const D>>& a,
            const std::type_identity_t<Matrix<const D>>& b, const MatmulOptions& options = {},
            const std::type_identity_t<MatmulEpilogue<D>>& epilogue = {}) {
  detail::matmul(stream, detail::matmul_call<D, D>(d, a, b, epilogue), options);
}

/// The same for A and B of 8-bit elements.
template <HalfNumber D>
void matmul(StreamRef& stream, const Matrix<D>& d, const Matrix<const e4m3>& a,
            const Matrix<const e4m3>& b, const MatmulOptions& options = {},
            const std::type_identity_t<MatmulEpilogue<D>>& epilogue = {}) {
  detail::matmul(stream, detail::matmul_call<D, e4m3>(d, a, b, epilogue), options);
}

}  // namespace iridium
