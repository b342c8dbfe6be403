// What the tests of matrices run, told without kernel code; see tile_kernels.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iridium/context.h"
#include "iridium/device/matrix.h"

namespace iridium::test {

enum class MatrixCall { load, store, load_from, store_to, gather };

/// Tiles of the tests, in blocks of `matrix_threads`: 8-byte elements are more vectors than
/// threads, the others fewer.
inline constexpr int matrix_threads = 64;
inline constexpr int matrix_rows = 6;
inline constexpr int matrix_columns = 32;
inline constexpr std::size_t matrix_elements = matrix_rows * matrix_columns;

/// Row r of a gathered tile is row (r * row_step + first_row) % rows of the member at place
/// (r * place_step + first_place) % members.
struct GatheredRows {
  std::size_t row_step = 1;
  std::size_t first_row = 0;
  std::size_t rows = 1;
  int place_step = 0;
  int first_place = 0;
  int members = 1;

  IR_DEVICE constexpr RemoteRow operator()(int row) const {
    return {(row * place_step + first_place) % members,
            (static_cast<std::size_t>(row) * row_step + first_row) % rows};
  }
};

/// A tile between (row, column) of a matrix and `elements`, one after another.
template <class T>
struct MatrixWork {
  MatrixCall call = MatrixCall::load;
  Cache cache = Cache::normal;
  Matrix<T> matrix = {};
  int place = 0;
  std::size_t row = 0;
  std::size_t column = 0;
  GatheredRows rows = {};
  T* elements = nullptr;
};

/// For std::uint8_t, fp16, float and double.
template <class T>
void run_matrix(const Context& context, StreamRef& stream, const Lane& lane,
                const MatrixWork<T>& work);

/// Copies a matrix of this rank to the member at `place`, tile by tile, as elements of another
/// type. Counts the visits of tile i in visits[i].
template <class From, class To>
struct ConvertedCopy {
  Matrix<const From> from = {};
  Matrix<To> to = {};
  int place = 0;
  TileOrder order = TileOrder::row;
  std::size_t band = 8;
  int blocks = 1;
  std::uint32_t* visits = nullptr;
};

/// For float to float, fp16 to float and float to fp16.
template <class From, class To>
void run_converted_copy(const Context& context, StreamRef& stream, const Lane& lane,
                        const ConvertedCopy<From, To>& work);

/// Rows and columns of the tiles of `run_tile_grid`.
inline constexpr int grid_rows = 4;
inline constexpr int grid_columns = 16;
using TestGrid = TileGrid<grid_rows, grid_columns>;
/// Writes where tile i begins to corners[i], on the device, and the number of tiles to `count`.
void run_tile_grid(const Context& context, StreamRef& stream, std::size_t rows, std::size_t columns,
                   TileOrder order, std::size_t band, TestGrid::Corner* corners,
                   std::size_t* count);

}  // namespace iridium::test
