// The stages of a tile product: tiles of A and B in block memory, filled in a ring.
#pragma once

#include <cstddef>

#include "iridium/device/matrix.h"

namespace iridium::detail {

/// Which stage is filled and which is multiplied: first in, first out. One block barrier per stage
/// is enough, since a stage is filled again only after the barrier that follows its last use.
template <int Stages, int Threads>
class StageRing {
 public:
  static_assert(Stages >= 2, "one stage is filled while another one is multiplied");

  IR_DEVICE explicit StageRing(BlockOf<Threads> block) : block_(block) {}

  /// How many stages are filled, or being filled, and not awaited.
  IR_DEVICE int pending() const { return pending_; }
  /// Whether a stage can be filled: all but one, which other threads may still multiply.
  IR_DEVICE bool has_room() const { return pending_ < Stages - 1; }
  /// The stage to fill.
  IR_DEVICE int next() const { return next_; }
  /// This thread has begun all its copies to the stage.
  IR_DEVICE void end_fetch() {
    target::end_fetch(block_.seat());
    next_ = behind(next_);
    ++pending_;
  }
  /// Waits for the oldest pending stage. Block-collective.
  IR_DEVICE void await() {
    await_all_but<Stages - 2>(pending_ - 1);
    block_.sync();
    current_ = behind(current_);
    --pending_;
  }
  /// The stage to multiply.
  IR_DEVICE int current() const { return current_; }

 private:
  IR_DEVICE static int behind(int stage) { return stage + 1 == Stages ? 0 : stage + 1; }
  template <int Most>
  IR_DEVICE void await_all_but(int open) const {
    if constexpr (Most > 0)
      if (open < Most) return await_all_but<Most - 1>(open);
    target::await_fetches<Most>(block_.seat());
  }

  BlockOf<Threads> block_;
  int next_ = 0;
  int current_ = Stages - 1;
  int pending_ = 0;
};

/// A tile in block memory, row by row, in chunks of 16 bytes. The chunks of a row change places
/// with its index: eight rows' chunks at one column lie in different banks.
template <class T, int Rows, int Columns>
struct StagedTile {
  static constexpr int rows = Rows;
  static constexpr int columns = Columns;
  static constexpr int elements = Rows * Columns;
  static constexpr int chunk = vector_elements<T>;
  static constexpr int chunks_per_row = Columns / chunk;
  static_assert(Columns % chunk == 0 && (8 % chunks_per_row == 0 || chunks_per_row % 8 == 0),
                "a row has 16, 32, 64 or a multiple of 128 bytes");

  /// Where an element lies.
  IR_DEVICE static int place(int row, int column) {
    constexpr int rows_per_line = chunks_per_row < 8 ? 8 / chunks_per_row : 1;
    constexpr int mask = (chunks_per_row < 8 ? chunks_per_row : 8) - 1;
    const int moved = column / chunk ^ (row / rows_per_line & mask);
    return row * Columns + moved * chunk + column % chunk;
  }
};

/// The first `count` elements from `from` on, and zeros: a chunk in all.
template <class T>
IR_DEVICE void fill_chunk(T* to, const T* from, std::size_t count) {
  IR_ROLLED for (int i = 0; i < vector_elements<T>; ++i) {
    to[i] = static_cast<std::size_t>(i) < count ? from[i] : T();
  }
}

/// Begins to copy a chunk, from an address that allows vectors.
template <class T>
IR_DEVICE void fetch_chunk(Seat* seat, T* to, const T* from) {
  if (target::is_whole(seat))
    target::load_vector<Cache::normal>(to, from);
  else
    target::fetch_vector(seat, target::block_address(to), from);
}

/// Begins to copy the part of the matrix at (row, column) to a `Staged` tile. What lies beyond the
/// matrix is not read and becomes zero. Block-collective.
template <class Staged, class T, int Threads>
IR_DEVICE void fetch_staged(BlockOf<Threads> block, T* stage, const Matrix<const T>& from,
                            std::size_t row, std::size_t column) {
  constexpr int chunk = Staged::chunk;
  Seat* const seat = block.seat();
  const TileExtent extent = extent_at(seat, from, row, column);
  const auto for_each_chunk = [&](auto function) {
    target::for_each_chunk<Staged::elements, chunk, Threads>(seat, [&](int place, int) {
      const int r = place / Staged::columns;
      const int c = place % Staged::columns;
      function(stage + Staged::place(r, c), static_cast<std::size_t>(r),
               static_cast<std::size_t>(c));
    });
  };
  if (extent.vectors && extent.rows >= Staged::rows && extent.columns >= Staged::columns)
    return for_each_chunk([&](T* to, std::size_t r, std::size_t c) {
      fetch_chunk(seat, to, from.at(row + r, column + c));
    });
  for_each_chunk([&](T* to, std::size_t r, std::size_t c) {
    if (r >= extent.rows || c >= extent.columns) return fill_chunk<T>(to, nullptr, 0);
    const T* const at = from.at(row + r, column + c);
    const std::size_t columns = extent.columns - c;
    if (extent.vectors && columns >= chunk)
      fetch_chunk(seat, to, at);
    else
      fill_chunk(to, at, columns);
  });
}

}  // namespace iridium::detail
