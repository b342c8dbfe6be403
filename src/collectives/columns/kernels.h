// Collectives along the columns of matrices.
#pragma once

#include "collectives/copy_arrays.h"
#include "collectives/reduction.h"
#include "collectives/shards.h"
#include "iridium/device/lane_call.h"

namespace iridium {

/// A member's columns, cut into pieces of rows: what a warp moves at a time. Counted in elements of
/// the type that kernels work on.
struct RowPieces {
  std::size_t columns;   ///< of a member
  std::size_t length;    ///< of a piece; the last one of a row has the rest
  std::size_t each_row;  ///< pieces of a row
  Rounds rounds;         ///< of pieces

  struct Piece {
    std::size_t row;
    std::size_t column;
    std::size_t count;
  };
  IR_DEVICE Piece at(std::size_t index) const {
    const std::size_t row = index / each_row;
    const std::size_t column = (index - row * each_row) * length;
    const std::size_t rest = columns - column;
    return {row, column, rest < length ? rest : length};
  }
  /// Where the round's piece `index` of `source` lies in a scratch that holds all sources'.
  IR_DEVICE std::size_t staged(int source, std::size_t index) const {
    return (static_cast<std::size_t>(source) * rounds.chunk + index) * length;
  }
};

/// A matrix whose columns are `columns` for each member.
template <class T>
struct JoinedMatrix {
  T* data;
  std::size_t pitch;

  IR_DEVICE T* at(const RowPieces& pieces, int place, const RowPieces::Piece& piece) const {
    return data + piece.row * pitch + static_cast<std::size_t>(place) * pieces.columns +
           piece.column;
  }
};

/// Does copy_of(after, index) for the pieces of `part` and `places` members, the first of which
/// stands `first` after this one. Block-collective.
template <class T, class CopyOf>
IR_DEVICE void copy_pieces(Block block, const Slice& part, int first, int places, CopyOf copy_of) {
  // As many as an int can count for every member.
  constexpr std::size_t most = std::size_t{1} << 24;
  IR_ROLLED for (std::size_t done = 0; done < part.count; done += most) {
    const auto count = static_cast<int>(part.count - done < most ? part.count - done : most);
    copy_arrays<T>(block, count * places, [&](int i) {
      const int after = i / count;
      const auto index = static_cast<std::size_t>(i - after * count);
      return copy_of(first + after, part.first + done + index);
    });
  }
}

/// What an all-gather of columns works on: bytes, since elements are only moved.
struct ColumnGather {
  JoinedMatrix<const std::uint8_t> in;  ///< of this member alone
  JoinedMatrix<std::uint8_t> out;
  RowPieces pieces;
  bool pushes;
};

/// Through the lane: members copy their columns to the own scratch, from which everybody reads
/// them, or, with `pushes`, to everybody's.
struct StagedColumnGather {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  ColumnGather work;

  IR_DEVICE void operator()(Block block) const {
    using Copy = ArrayCopy<std::uint8_t>;
    const Peers& peers = lane.peers();
    const RowPieces& pieces = work.pieces;
    const int me = peers.rank();
    LaneCall call(lane, block);
    if (!call.begin()) return;
    IR_ROLLED for (std::uint32_t round = 0; round < pieces.rounds.count; ++round) {
      const Slice part = pieces.rounds.slice(block, round);
      const std::size_t first = pieces.rounds.first(round);
      auto* const scratch = lane.scratch<std::uint8_t>(call.parity(round));
      // The scratch has a place for every source where they push, else for this member alone.
      const auto slot = [&](int source, std::size_t index) {
        return scratch + pieces.staged(work.pushes ? source : 0, index);
      };
      copy_pieces<std::uint8_t>(
          block, part, 0, work.pushes ? peers.size() : 2, [&](int after, std::size_t index) {
            const auto piece = pieces.at(first + index);
            const std::uint8_t* const from = work.in.at(pieces, 0, piece);
            if (after == 0) {
              // In place it is there already, and others read it.
              std::uint8_t* const own = work.out.at(pieces, me, piece);
              return Copy{own, from, own == from ? 0 : piece.count};
            }
            std::uint8_t* const to = slot(me, index);
            return Copy{work.pushes ? peers.at(to, staggered(peers, after)) : to, from,
                        piece.count};
          });
      if (!call.barrier()) return;
      block.let_next_start();
      copy_pieces<std::uint8_t>(
          block, part, 1, peers.size() - 1, [&](int after, std::size_t index) {
            const int source = staggered(peers, after);
            const auto piece = pieces.at(first + index);
            const std::uint8_t* const from = slot(source, index);
            return Copy{work.out.at(pieces, source, piece),
                        work.pushes ? from : peers.at(from, source), piece.count};
          });
    }
    call.finish(pieces.rounds.count);
  }
};

/// On symmetric matrices: members read everybody's input or, with `pushes`, write everybody's
/// output.
struct DirectColumnGather {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  ColumnGather work;  ///< of one round

  IR_DEVICE void operator()(Block block) const {
    using Copy = ArrayCopy<std::uint8_t>;
    const Peers& peers = lane.peers();
    const RowPieces& pieces = work.pieces;
    LaneCall call(lane, block);
    if (!call.enter()) return;
    block.let_next_start();
    copy_pieces<std::uint8_t>(
        block, pieces.rounds.slice(block, 0), 0, peers.size(), [&](int after, std::size_t index) {
          const int place = staggered(peers, after);
          const auto piece = pieces.at(index);
          const std::uint8_t* const from = work.in.at(pieces, 0, piece);
          if (work.pushes)
            return Copy{peers.at(work.out.at(pieces, peers.rank(), piece), place), from,
                        piece.count};
          return Copy{work.out.at(pieces, place, piece), peers.at(from, place), piece.count};
        });
    call.leave();
  }
};

/// Members reduce their own columns: of everybody's input, or of what everybody has staged of it.
template <Number T>
struct ColumnReduce {
  static constexpr int blocks_per_processor = 2;
  static constexpr bool begins_early = true;
  Lane lane;
  JoinedMatrix<const T> in;
  JoinedMatrix<T> out;  ///< of this member alone
  RowPieces pieces;
  ReduceOp op;
  bool direct;  ///< `in` is symmetric, and all of it one round

  IR_DEVICE void operator()(Block block) const {
    LaneCall call(lane, block);
    if (direct) {
      if (!call.enter()) return;
      block.let_next_start();
      reduce(block, 0, nullptr);
      call.leave();
      return;
    }
    if (!call.begin()) return;
    IR_ROLLED for (std::uint32_t round = 0; round < pieces.rounds.count; ++round) {
      T* const scratch = lane.scratch<T>(call.parity(round));
      stage(block, round, scratch);
      if (!call.barrier()) return;
      block.let_next_start();
      reduce(block, round, scratch);
    }
    call.finish(pieces.rounds.count);
  }

 private:
  IR_DEVICE void stage(Block block, std::uint32_t round, T* scratch) const {
    const Peers& peers = lane.peers();
    copy_pieces<T>(block, pieces.rounds.slice(block, round), 1, peers.size() - 1,
                   [&](int after, std::size_t index) {
                     const int place = staggered(peers, after);
                     const auto piece = pieces.at(pieces.rounds.first(round) + index);
                     return ArrayCopy<T>{scratch + pieces.staged(place, index),
                                         in.at(pieces, place, piece), piece.count};
                   });
  }

  IR_DEVICE void reduce(Block block, std::uint32_t round, T* scratch) const {
    const Peers& peers = lane.peers();
    const int me = peers.rank();
    const Slice part = pieces.rounds.slice(block, round);
    IR_ROLLED for (std::size_t index = part.first; index < part.first + part.count; ++index) {
      const auto piece = pieces.at(pieces.rounds.first(round) + index);
      const T* const own = in.at(pieces, me, piece);
      const T* const shared = direct ? own : scratch + pieces.staged(me, index);
      reduce_slice<max_queued_vectors, T>(
          block, op, piece.count, peers.size(),
          [&](int place) { return place == me ? own : peers.at(shared, place); }, 1,
          [&](int) { return out.at(pieces, 0, piece); });
    }
  }
};

}  // namespace iridium
