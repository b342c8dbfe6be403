// All-gather and reduce-scatter along the columns of matrices: what tensor parallelism joins and
// splits along K.
#pragma once

#include <cstddef>
#include <type_traits>

#include "iridium/all_gather.h"
#include "iridium/device/matrix.h"
#include "iridium/reduce_scatter.h"

namespace iridium {

/// A matrix in a symmetric array, at the same place on every member: its first element is the
/// array's element `first`. Names the array for the time of a call.
template <class T>
struct SymmetricMatrix {
  const SymmetricArray<T>& array;
  std::size_t rows;
  std::size_t columns;
  std::size_t pitch;  ///< elements from one row to the next
  std::size_t first = 0;
};

namespace detail {

/// A matrix, its type forgotten; pitches are in elements.
struct ColumnsOf {
  const void* data;
  std::size_t rows;
  std::size_t columns;
  std::size_t pitch;
};

struct ColumnBuffers {
  ColumnsOf in;
  ColumnsOf out;
  void* out_data;  ///< `out.data`, to be written
  DataType type;
  bool symmetric;  ///< peers may touch them
};

void all_gather_columns(StreamRef& stream, const Team& team, const ColumnBuffers& buffers,
                        const AllGatherOptions& options);
void reduce_scatter_columns(StreamRef& stream, const Team& team, const ColumnBuffers& buffers,
                            const ReduceScatterOptions& options);

template <class T>
ColumnBuffers column_buffers(const Matrix<T>& out, const Matrix<const T>& in) {
  return {{in.data, in.rows, in.columns, in.pitch},
          {out.data, out.rows, out.columns, out.pitch},
          out.data,
          data_type_of<T>(),
          false};
}

/// Throws `invalid_argument` unless the matrix lies in its array of `size` elements, `first` behind
/// its beginning.
void require_matrix(const char* operation, const char* which, std::size_t size, std::size_t first,
                    const ColumnsOf& matrix);

template <class T>
ColumnBuffers column_buffers(const char* operation, const SymmetricMatrix<T>& out,
                             const SymmetricMatrix<T>& in) {
  const auto view = [](const SymmetricMatrix<T>& matrix) {
    return Matrix<T>{matrix.array.data() + matrix.first, matrix.rows, matrix.columns, matrix.pitch};
  };
  ColumnBuffers buffers = column_buffers<T>(view(out), view(in));
  buffers.symmetric = true;
  require_matrix(operation, "in", in.array.size(), in.first, buffers.in);
  require_matrix(operation, "out", out.array.size(), out.first, buffers.out);
  return buffers;
}

}  // namespace detail

/// out(row, s × in.columns + c) = in(row, c) of the member at place s, for every row, s, and c
/// below `in.columns`: `out` has the rows of `in` and the columns of all members together. The same
/// rows and columns on every member; pitches are each member's own.
///
///     // 4 rows, 256 columns from each of two members, in memory with room for 520 a row
///     all_gather_columns(stream, team, Matrix<float>{out, 4, 512, 520}, {in, 4, 256, 256});
///
/// `in` does not overlap `out`, or is this rank's columns of it. Knows push and pull. Otherwise as
/// `all_gather`.
template <Number T>
void all_gather_columns(StreamRef& stream, const Team& team, const Matrix<T>& out,
                        const std::type_identity_t<Matrix<const T>>& in,
                        const AllGatherOptions& options = {}) {
  detail::all_gather_columns(stream, team, detail::column_buffers<T>(out, in), options);
}

/// The same on symmetric matrices, which may not overlap: peers read `in` or write `out`. Pitches
/// are the same on every member.
template <Number T>
void all_gather_columns(StreamRef& stream, const Team& team, const SymmetricMatrix<T>& out,
                        const SymmetricMatrix<T>& in, const AllGatherOptions& options = {}) {
  detail::all_gather_columns(stream, team, detail::column_buffers("all_gather_columns", out, in),
                             options);
  detail::retain_captured(stream, in.array, out.array);
}

/// out(row, c) = the reduction of every member's in(row, r × out.columns + c), where r is this
/// rank's place: `in` has the rows of `out`, and its columns for every member. The same rows and
/// columns on every member; pitches are each member's own.
///
/// `out` does not overlap `in`, or is this rank's columns of it. Knows pull. Otherwise as
/// `reduce_scatter`, with the same bits.
template <Number T>
void reduce_scatter_columns(StreamRef& stream, const Team& team, const Matrix<T>& out,
                            const std::type_identity_t<Matrix<const T>>& in,
                            const ReduceScatterOptions& options = {}) {
  detail::reduce_scatter_columns(stream, team, detail::column_buffers<T>(out, in), options);
}

/// The same on symmetric matrices, which may not overlap: peers read `in`. Pitches are the same on
/// every member.
template <Number T>
void reduce_scatter_columns(StreamRef& stream, const Team& team, const SymmetricMatrix<T>& out,
                            const SymmetricMatrix<T>& in,
                            const ReduceScatterOptions& options = {}) {
  detail::reduce_scatter_columns(
      stream, team, detail::column_buffers("reduce_scatter_columns", out, in), options);
  detail::retain_captured(stream, in.array, out.array);
}

}  // namespace iridium
