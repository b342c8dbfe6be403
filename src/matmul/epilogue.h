// From sums to elements of D, in every kernel alike.
#pragma once

#include <cmath>
#include <cstddef>

#include "iridium/device/matrix.h"
#include "iridium/matmul.h"

namespace iridium {

IR_DEVICE inline float activate(MatmulActivation activation, float x) {
  switch (activation) {
    case MatmulActivation::none:
      break;
    case MatmulActivation::relu:
      return maximum(x, 0.0f);
    case MatmulActivation::gelu:
      return 0.5f * x * (1.0f + erff(x * 0.70710678f));
    case MatmulActivation::silu:
      return x / (1.0f + expf(-x));
  }
  return x;
}

/// What a kernel knows of `MatmulEpilogue`. Rows and columns are those of A × B, and D the type of
/// the result's elements.
struct Epilogue {
  const float* a_scales = nullptr;  ///< null: none
  const float* b_scales = nullptr;
  const void* bias = nullptr;
  const void* residual = nullptr;
  std::size_t residual_pitch = 0;
  float scale = 1;
  bool scales_rows = false;     ///< `a_scales` has one for each row, else one for all
  bool scales_columns = false;  ///< `b_scales` likewise
  bool bias_along_rows = false;
  bool gated = false;
  MatmulActivation activation = MatmulActivation::none;
  bool is_identity = true;  ///< sums are rounded, and nothing else

  /// What becomes of a sum before it is rounded; not of gated ones.
  template <class D>
  IR_DEVICE float finished(float sum, std::size_t row, std::size_t column) const {
    if (is_identity) return sum;
    return with_residual<D>(activate(activation, scaled<D>(sum, row, column)), row, column);
  }
  /// What becomes of the sums at `column` and behind it, at half the column of D.
  template <class D>
  IR_DEVICE float finished_pair(float gate, float passed, std::size_t row,
                                std::size_t column) const {
    const float x =
        activate(activation, scaled<D>(gate, row, column)) * scaled<D>(passed, row, column + 1);
    return with_residual<D>(x, row, column / 2);
  }

 private:
  template <class D>
  IR_DEVICE float scaled(float sum, std::size_t row, std::size_t column) const {
    float x = sum * scale;
    if (a_scales != nullptr) x *= a_scales[scales_rows ? row : 0];
    if (b_scales != nullptr) x *= b_scales[scales_columns ? column : 0];
    if (bias != nullptr)
      x += static_cast<float>(static_cast<const D*>(bias)[bias_along_rows ? row : column]);
    return x;
  }
  /// `column` is D's.
  template <class D>
  IR_DEVICE float with_residual(float x, std::size_t row, std::size_t column) const {
    if (residual == nullptr) return x;
    return x + static_cast<float>(static_cast<const D*>(residual)[row * residual_pitch + column]);
  }
};

/// Finishes eight sums side by side, and writes what becomes of them. A × B has as many rows as D,
/// and `columns` columns.
template <class D>
IR_DEVICE void store_finished(const Seat* seat, const Epilogue& epilogue, const Matrix<D>& d,
                              std::size_t columns, std::size_t row, std::size_t column,
                              const float* sums) {
  if (row >= d.rows || column >= columns) return;
  const int there = columns - column < 8 ? static_cast<int>(columns - column) : 8;
  alignas(16) D results[8];
  IR_UNROLLED for (int i = 0; i < 8; ++i) {
    const std::size_t at = column + static_cast<std::size_t>(i);
    if (i < there && !epilogue.gated) results[i] = D(epilogue.finished<D>(sums[i], row, at));
    if (i + 1 < there && i % 2 == 0 && epilogue.gated)
      results[i / 2] = D(epilogue.finished_pair<D>(sums[i], sums[i + 1], row, at));
  }
  D* const to = d.at(row, epilogue.gated ? column / 2 : column);
  const int count = epilogue.gated ? there / 2 : there;
  constexpr int vector = vector_elements<D>;
  const bool vectors = count % vector == 0 && target::allows_vectors(seat, to);
  IR_UNROLLED for (int i = 0; i < 8; ++i) {
    if (vectors && i % vector == 0 && i < count)
      target::store_vector<Cache::normal>(to + i, results + i);
    if (!vectors && i < count) to[i] = results[i];
  }
}

}  // namespace iridium
