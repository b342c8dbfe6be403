// Matrices in memory, and two-dimensional tiles of them, of this rank or any member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "iridium/device/remote_memory.h"

namespace iridium {

/// `rows` × `columns` elements in memory, row by row, `pitch` elements from one row to the next. A
/// plain value that owns nothing.
template <class T>
struct Matrix {
  T* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t pitch = 0;  ///< at least `columns`

  IR_DEVICE T* at(std::size_t row, std::size_t column) const { return data + row * pitch + column; }
  template <class U>
    requires(!std::is_const_v<T> && std::is_same_v<U, const T>)
  IR_DEVICE operator Matrix<U>() const {
    return {data, rows, columns, pitch};
  }
  /// The counterpart of this matrix at the member at `place`.
  IR_DEVICE Matrix on(const Peers& peers, int place) const {
    return {peers.at(data, place), rows, columns, pitch};
  }
  /// The elements from (row, column) on, as a matrix of its own.
  IR_DEVICE Matrix part(std::size_t row, std::size_t column, std::size_t part_rows,
                        std::size_t part_columns) const {
    return {at(row, column), part_rows, part_columns, pitch};
  }
};

/// In which order the tiles of a matrix are counted.
enum class TileOrder {
  row,       ///< row by row
  column,    ///< column by column
  swizzled,  ///< bands of a few tile rows, column by column: neighbours in time share both inputs
};

/// A matrix cut into tiles of `Rows` × `Columns` elements, the last ones ragged.
template <int Rows, int Columns>
class TileGrid {
 public:
  /// Where a tile begins.
  struct Corner {
    std::size_t row;
    std::size_t column;
  };

  /// `band`: tile rows per band of the swizzled order.
  IR_DEVICE TileGrid(std::size_t rows, std::size_t columns, TileOrder order = TileOrder::row,
                     std::size_t band = 8)
      : down_((rows + Rows - 1) / Rows),
        across_((columns + Columns - 1) / Columns),
        order_(order),
        band_(band == 0 ? 1 : band) {}
  template <class T>
  IR_DEVICE explicit TileGrid(const Matrix<T>& matrix, TileOrder order = TileOrder::row,
                              std::size_t band = 8)
      : TileGrid(matrix.rows, matrix.columns, order, band) {}

  IR_DEVICE std::size_t count() const { return down_ * across_; }

  /// Tile `index`, below `count()`.
  IR_DEVICE Corner at(std::size_t index) const {
    if (order_ == TileOrder::row) return corner(index / across_, index % across_);
    if (order_ == TileOrder::column) return corner(index % down_, index / down_);
    const std::size_t first = index / (band_ * across_) * band_;
    const std::size_t height = down_ - first < band_ ? down_ - first : band_;
    const std::size_t rest = index - first * across_;
    return corner(first + rest % height, rest / height);
  }

 private:
  IR_DEVICE static Corner corner(std::size_t down, std::size_t across) {
    return {down * Rows, across * Columns};
  }

  std::size_t down_;
  std::size_t across_;
  TileOrder order_;
  std::size_t band_;
};

/// A row of a matrix at a member; see `gather`.
struct RemoteRow {
  int place;
  std::size_t row;
};

namespace detail {

/// Whether every row of the matrix, from `column` on, begins at an address for 16-byte accesses.
template <class T>
IR_DEVICE bool rows_allow_vectors(const Seat* seat, const Matrix<T>& matrix, std::size_t column) {
  return target::allows_vectors(seat, matrix.data + column) &&
         target::allows_vectors(seat, matrix.data + column + matrix.pitch);
}

/// Which part of a tile at (row, column) is there.
struct TileExtent {
  std::size_t rows;
  std::size_t columns;
  bool vectors;  ///< all rows begin at addresses for 16-byte accesses
};
template <class T>
IR_DEVICE TileExtent extent_at(const Seat* seat, const Matrix<T>& matrix, std::size_t row,
                               std::size_t column) {
  return {row < matrix.rows ? matrix.rows - row : 0,
          column < matrix.columns ? matrix.columns - column : 0,
          rows_allow_vectors(seat, matrix, column)};
}

/// Calls whole(held, address) for chunks that can be moved at once, or part(held, address, columns)
/// with the number of columns that are there. `row_at(r)`: where row r of the tile begins.
template <int Rows, int Columns, int Chunk, bool CanBeVectors, int Threads, class RowAt,
          class Whole, class Part>
IR_DEVICE void for_each_chunk_of_rows(BlockOf<Threads> block, const TileExtent& extent,
                                      RowAt row_at, Whole whole, Part part) {
  static_assert(Columns % Chunk == 0, "a row of a tile has whole chunks");
  Seat* const seat = block.seat();
  target::point(seat);
  const bool full =
      CanBeVectors && extent.vectors && extent.rows >= Rows && extent.columns >= Columns;
  if (full) {
    target::for_each_chunk<Rows * Columns, Chunk, Threads>(
        seat, [&](int place, int held) { whole(held, row_at(place / Columns) + place % Columns); });
    return;
  }
  target::for_each_chunk<Rows * Columns, Chunk, Threads>(seat, [&](int place, int held) {
    const auto row = static_cast<std::size_t>(place / Columns);
    const auto column = static_cast<std::size_t>(place % Columns);
    if (row >= extent.rows || column >= extent.columns) return part(held, nullptr, 0);
    const std::size_t columns = extent.columns - column;
    if (CanBeVectors && extent.vectors && columns >= Chunk)
      whole(held, row_at(place / Columns) + column);
    else
      part(held, row_at(place / Columns) + column, columns);
  });
}

template <int Rows, int Columns, Cache C, class T, int Threads, class RowAt>
IR_DEVICE Tile<T, Rows * Columns, Threads> load_rows(BlockOf<Threads> block,
                                                     const TileExtent& extent, RowAt row_at) {
  constexpr int chunk = vector_elements<T>;
  Tile<T, Rows * Columns, Threads> tile;
  target::begin_tile<Rows * Columns>(block.seat(), elements_of(tile));
  for_each_chunk_of_rows<Rows, Columns, chunk, true>(
      block, extent, row_at,
      [&](int held, const T* from) { load_chunk<C, chunk>(elements_of(tile) + held, from); },
      [&](int held, const T* from, std::size_t columns) {
        load_elements<chunk>(elements_of(tile) + held, from, 0, columns, everywhere);
      });
  return tile;
}

/// In checked mode, fails the team unless a tile at (row, column) of the matrix at `place` begins
/// inside the matrix, and the matrix lies in the segment.
template <class T, int Threads>
IR_DEVICE bool may_access(BlockOf<Threads> block, const Lane& lane, const Matrix<T>& matrix,
                          int place, std::size_t row, std::size_t column, bool reports) {
  if (!lane.is_checked()) return true;
  const bool is_narrow = matrix.pitch < matrix.columns;
  if (is_narrow || row >= matrix.rows || column >= matrix.columns) {
    if (reports)
      report(block, lane, is_narrow ? FaultKind::narrow_pitch : FaultKind::outside_matrix,
             is_narrow ? matrix.pitch : row, is_narrow ? matrix.columns : column, matrix.rows,
             matrix.columns);
    return false;
  }
  const std::size_t before_last = bounded_product(matrix.rows - 1, matrix.pitch);
  const std::size_t elements =
      before_last > ~matrix.columns ? before_last : before_last + matrix.columns;
  return may_access(block, lane, matrix.data, bounded_product(elements, sizeof(T)), place, reports);
}

}  // namespace detail

/// The tile of `Rows` × `Columns` elements at (row, column); what lies beyond the matrix is zero.
/// Its elements are those of the rows, one after another. Block-collective. 16-byte accesses where
/// the address and the pitch are multiples of 16 bytes.
template <int Rows, int Columns, class T, int Threads, Cache C = Cache::normal>
[[nodiscard]] IR_DEVICE auto load(BlockOf<Threads> block, const Matrix<T>& from, std::size_t row,
                                  std::size_t column, CacheTag<C> = {}) {
  const auto extent = detail::extent_at(block.seat(), from, row, column);
  return detail::load_rows<Rows, Columns, C, std::remove_const_t<T>>(
      block, extent,
      [&](int r) -> const T* { return from.at(row + static_cast<std::size_t>(r), column); });
}

/// Writes the tile at (row, column); what lies beyond the matrix is dropped. Block-collective.
template <int Rows, int Columns, class T, int N, int Threads, int Chunk, Cache C = Cache::normal>
IR_DEVICE void store(BlockOf<Threads> block, const Matrix<T>& to, std::size_t row,
                     std::size_t column, const Tile<T, N, Threads, Chunk>& tile, CacheTag<C> = {}) {
  static_assert(N == Rows * Columns, "the tile has as many elements as its rows and columns");
  detail::for_each_chunk_of_rows<Rows, Columns, Chunk, detail::has_vectors<T, Chunk>>(
      block, detail::extent_at(block.seat(), to, row, column),
      [&](int r) { return to.at(row + static_cast<std::size_t>(r), column); },
      [&](int held, T* at) {
        if constexpr (detail::has_vectors<T, Chunk>)
          detail::store_chunk<C, Chunk>(at, detail::elements_of(tile) + held);
      },
      [&](int held, T* at, std::size_t columns) {
        detail::store_elements<Chunk>(at, detail::elements_of(tile) + held, 0, columns, everywhere);
      });
}

/// `load` from the matrix at the member at `place`; checked as all accesses in remote_memory.h.
/// Block-collective.
template <int Rows, int Columns, class T, int Threads, Cache C = Cache::normal>
[[nodiscard]] IR_DEVICE auto load_from(BlockOf<Threads> block, const Lane& lane,
                                       const Matrix<T>& mine, int place, std::size_t row,
                                       std::size_t column, CacheTag<C> hint = {}) {
  Matrix<T> theirs = mine;
  if (detail::may_access(block, lane, mine, place, row, column, block.is_leader()))
    theirs = mine.on(lane.peers(), place);
  else
    theirs = {reinterpret_cast<T*>(lane.terms().base), 0, 0, 0};
  return load<Rows, Columns>(block, theirs, row, column, hint);
}

/// `store` to the matrix at the member at `place`. Block-collective.
template <int Rows, int Columns, class T, int N, int Threads, int Chunk, Cache C = Cache::normal>
IR_DEVICE void store_to(BlockOf<Threads> block, const Lane& lane, const Matrix<T>& mine, int place,
                        std::size_t row, std::size_t column, const Tile<T, N, Threads, Chunk>& tile,
                        CacheTag<C> hint = {}) {
  if (!detail::may_access(block, lane, mine, place, row, column, block.is_leader())) return;
  store<Rows, Columns>(block, mine.on(lane.peers(), place), row, column, tile, hint);
}

/// A tile whose rows come from anywhere: row r is `row_of(r)`, a `RemoteRow`, from `column` on.
/// Rows beyond the matrix are zero, and in checked mode an error. Block-collective.
template <int Rows, int Columns, class T, int Threads, class RowOf, Cache C = Cache::normal>
[[nodiscard]] IR_DEVICE auto gather(BlockOf<Threads> block, const Lane& lane, const Matrix<T>& mine,
                                    RowOf row_of, std::size_t column, CacheTag<C> = {}) {
  using Value = std::remove_const_t<T>;
  constexpr int chunk = vector_elements<Value>;
  static_assert(Columns % chunk == 0, "a row of a tile has whole chunks");
  const auto extent = detail::extent_at(block.seat(), mine, 0, column);
  Tile<Value, Rows * Columns, Threads> tile;
  target::point(block.seat());
  target::begin_tile<Rows * Columns>(block.seat(), detail::elements_of(tile));
  target::for_each_chunk<Rows * Columns, chunk, Threads>(block.seat(), [&](int place, int held) {
    const RemoteRow from = row_of(place / Columns);
    const auto first = static_cast<std::size_t>(place % Columns);
    const std::size_t columns = first < extent.columns ? extent.columns - first : 0;
    const bool is_there =
        detail::may_access(block, lane, mine, from.place, from.row, column, true) &&
        from.row < mine.rows && columns > 0;
    Value* const to = detail::elements_of(tile) + held;
    if (!is_there) return detail::load_elements<chunk>(to, to, 0, 0, everywhere);
    const T* const at = mine.on(lane.peers(), from.place).at(from.row, column + first);
    if (extent.vectors && columns >= chunk)
      detail::load_chunk<C, chunk>(to, at);
    else
      detail::load_elements<chunk>(to, at, 0, columns, everywhere);
  });
  return tile;
}

}  // namespace iridium
