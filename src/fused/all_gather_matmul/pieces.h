// A, gathered piece by piece by some blocks, while others wait for pieces.
#pragma once

#include "iridium/device/matrix.h"
#include "iridium/device/signal.h"

namespace iridium {

/// The pieces of A, each of which one block gathers: a grid of `piece_rows` × `piece_depth`
/// elements, ragged at its ends.
struct GatherPieces {
  std::size_t rows;         ///< of A
  std::size_t depth;        ///< columns of A
  std::size_t shard_rows;   ///< of a member's shard
  std::size_t shard_depth;  ///< columns of it
  std::size_t piece_rows;
  std::size_t piece_depth;
  std::size_t down;
  std::size_t across;
  std::size_t first_row;  ///< the rows of pieces that are gathered first: where the own shard is

  struct Piece {
    std::size_t down;
    std::size_t across;
  };
  IR_DEVICE std::size_t count() const { return down * across; }
  /// The one gathered i-th. Where shards are rows, all of a row of pieces, one row after the other,
  /// from the own shard on. Where they are columns, all of a column: products take K in order.
  IR_DEVICE Piece at(std::size_t i) const {
    if (shard_depth == depth) return {(i / across + first_row) % down, i % across};
    return {i % down, i / down};
  }
  /// Its place among all, for what tells that it is there.
  IR_DEVICE std::size_t index(const Piece& piece) const {
    return piece.down * across + piece.across;
  }
  /// That of the piece that holds an element.
  IR_DEVICE std::size_t index_of(std::size_t row, std::size_t k) const {
    return index({row / piece_rows, k / piece_depth});
  }
};

namespace detail {

/// Copies a matrix from the member at `place`.
template <int Rows, int Columns, class T, int Threads>
IR_DEVICE void copy_from(BlockOf<Threads> block, const Lane& lane, const Matrix<T>& to,
                         const Matrix<const T>& from, int place) {
  const TileGrid<Rows, Columns> tiles(to);
  IR_ROLLED for (std::size_t i = 0; i < tiles.count(); ++i) {
    const auto corner = tiles.at(i);
    store<Rows, Columns>(
        block, to, corner.row, corner.column,
        load_from<Rows, Columns>(block, lane, from, place, corner.row, corner.column));
  }
}

}  // namespace detail

/// Gathers pieces first, first + step, … and tells this rank's blocks of each. `shard`: this
/// member's, at the same place on every member. Waits for nobody.
template <class T, int Threads>
IR_DEVICE void gather_pieces(BlockOf<Threads> block, const Lane& lane, const GatherPieces& pieces,
                             const Matrix<T>& gathered, const Matrix<const T>& shard,
                             std::size_t first, std::size_t step) {
  // Four vectors of a thread are in flight.
  constexpr int columns = 16 * vector_elements<T>;
  constexpr int rows = 4 * Threads * vector_elements<T> / columns;
  const auto smaller = [](std::size_t x, std::size_t y) { return x < y ? x : y; };
  IR_ROLLED for (std::size_t i = first; i < pieces.count(); i += step) {
    const auto piece = pieces.at(i);
    const std::size_t first_row = piece.down * pieces.piece_rows;
    const std::size_t first_column = piece.across * pieces.piece_depth;
    const std::size_t end_row = smaller(first_row + pieces.piece_rows, pieces.rows);
    const std::size_t end_column = smaller(first_column + pieces.piece_depth, pieces.depth);
    // From each member whose shard the piece touches.
    for (std::size_t row = first_row, next_row = 0; row < end_row; row = next_row) {
      const std::size_t of_rows = row / pieces.shard_rows;
      next_row = smaller((of_rows + 1) * pieces.shard_rows, end_row);
      for (std::size_t column = first_column, next = 0; column < end_column; column = next) {
        const std::size_t of_columns = column / pieces.shard_depth;
        next = smaller((of_columns + 1) * pieces.shard_depth, end_column);
        detail::copy_from<rows, columns>(
            block, lane, gathered.part(row, column, next_row - row, next - column),
            shard.part(row - of_rows * pieces.shard_rows, column - of_columns * pieces.shard_depth,
                       next_row - row, next - column),
            static_cast<int>(of_rows + of_columns));
      }
    }
    signal(block, &lane.pieces()->ready[pieces.index(piece)], 1, SignalOp::set, order::release,
           scope::device);
  }
}

/// This block's number, in the order in which blocks of the kernel begin. Whoever has a number may
/// wait for blocks with lower ones.
template <int Threads>
IR_DEVICE std::uint32_t take_ticket(BlockOf<Threads> block, const Lane& lane) {
  std::uint64_t ticket = 0;
  if (block.is_leader())
    ticket = target::update<AtomicOp::add, Order::relaxed, Scope::device>(
        block.seat(), &lane.pieces()->tickets, 1u);
  (void)block.any(false, ticket);
  return static_cast<std::uint32_t>(ticket);
}

/// Makes everything zero again, by one of `threads` threads.
IR_DEVICE inline void clear_pieces(LanePieces* pieces, std::size_t count, int thread, int threads) {
  for (auto i = static_cast<std::size_t>(thread); i < count; i += static_cast<std::size_t>(threads))
    pieces->ready[i] = 0;
  if (thread != 0) return;
  pieces->tickets = 0;
  pieces->leavers = 0;
}

/// This block waits for no piece any more. The last one that says so makes everything zero again.
template <int Threads>
IR_DEVICE void leave_pieces(BlockOf<Threads> block, const Lane& lane, std::size_t count) {
  LanePieces* const pieces = lane.pieces();
  std::uint64_t before = 0;
  block.sync();
  target::point(block.seat());
  if (block.is_leader())
    before = target::update<AtomicOp::add, Order::acq_rel, Scope::device>(block.seat(),
                                                                          &pieces->leavers, 1u);
  (void)block.any(false, before);
  if (before + 1 == static_cast<std::uint64_t>(block.count()))
    clear_pieces(pieces, count, block.thread(), block.thread_count());
}

}  // namespace iridium
