// Tile products: matrix products as a part of kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "iridium/device/block_memory.h"
#include "iridium/device/matmul_layout.h"
#include "iridium/device/matmul_sums.h"
#include "iridium/device/matmul_tensor.h"

namespace iridium {

/// The types that a `TileProduct` multiplies. Sums are in float.
template <class T>
concept TileProductNumber = HalfNumber<T> || std::same_as<T, float>;

/// A shape for elements of T that leaves some block memory to the kernel.
template <TileProductNumber T>
inline constexpr TileProductShape tile_product_shape = {.depth = 64 / static_cast<int>(sizeof(T))};

/// A tile of A × B, which the threads of a block compute together: `shape.rows` × `shape.columns`
/// sums, in the threads' registers. A has M rows and K columns, and B is stored as `layout` says.
///
///     using Product = TileProduct<bf16, MatmulLayout::nk>;
///     IR_DEVICE void operator()(Product::ABlock block) const {
///       Product product(block);
///       product.run(a, b, row, column);  // the tile that begins at (row, column) of A × B
///       product.for_each_pair([&](std::size_t r, std::size_t c, float x, float y) {
///         store_pair(d, row + r, column + c, x, y);
///       });
///     }
///
/// Copies to the stages go on while others are multiplied. With calls of its own a kernel can do
/// something in between, such as wait for what another rank sends:
///
///     product.clear();
///     std::size_t k = 0;
///     while (k < a.columns || product.pending() > 0) {
///       for (; k < a.columns && product.has_room(); k += Product::depth) {
///         if (!wait(block, lane, flags + k / Product::depth, 1)) return;
///         product.fetch(a, b, row, column, k);
///       }
///       product.await();
///       product.multiply();
///     }
///
/// What lies beyond the matrices counts as zero and is never read. Matrices may begin anywhere and
/// have any pitch: where rows are no multiples of 16 bytes apart, copies are slower and the results
/// are the same. A sum is made in the order of K, whatever the shape, its place in the tile and the
/// other rows and columns; fp16 and bf16 go to tensor cores on NVIDIA GPUs.
///
/// All members but the accesses to results are block-collective, and a block has one product of a
/// type at a time. While stages are pending it has no other copies to block memory. `Ring` is for
/// tests.
template <TileProductNumber T, MatmulLayout layout, TileProductShape shape = tile_product_shape<T>,
          template <int, int> class Ring = detail::StageRing>
class TileProduct {
 public:
  using ABlock = BlockOf<shape.threads>;
  static constexpr int rows = shape.rows;
  static constexpr int columns = shape.columns;
  static constexpr int depth = shape.depth;

  IR_DEVICE explicit TileProduct(ABlock block)
      : block_(block), ring_(block), stages_(Stages(block).data()) {
    clear();
  }

  /// The tile's sums over all of K: rows of A from `row` on times columns of A × B from `column`
  /// on.
  IR_DEVICE void run(const Matrix<const T>& a, const Matrix<const T>& b, std::size_t row,
                     std::size_t column) {
    clear();
    add(a, b, row, column);
  }
  /// `run` that adds to the sums there are.
  IR_DEVICE void add(const Matrix<const T>& a, const Matrix<const T>& b, std::size_t row,
                     std::size_t column) {
    std::size_t k = 0;
    for (; k < a.columns && ring_.has_room(); k += depth) fetch(a, b, row, column, k);
    while (pending() > 0) {
      await();
      // Before the product, which its copies then take place beside.
      if (k < a.columns) fetch(a, b, row, column, k);
      k += depth;
      multiply();
    }
  }

  /// All sums become zero.
  IR_DEVICE void clear() {
    IR_UNROLLED for (float& sum : sums_) {
      sum = 0;
    }
  }
  /// How many stages are fetched and not awaited.
  IR_DEVICE int pending() const { return ring_.pending(); }
  /// Whether another stage can be fetched before `await` is called.
  IR_DEVICE bool has_room() const { return ring_.has_room(); }
  /// Begins to fill the next stage, for which there is room, with `depth` elements of K from `k`
  /// on.
  IR_DEVICE void fetch(const Matrix<const T>& a, const Matrix<const T>& b, std::size_t row,
                       std::size_t column, std::size_t k) {
    target::point(block_.seat());
    T* const stage = stages_ + ring_.next() * stage_elements;
    detail::fetch_staged<StagedA>(block_, stage, a, row, k);
    detail::fetch_staged<StagedB>(block_, stage + StagedA::elements, b, b_along_k ? column : k,
                                  b_along_k ? k : column);
    if (target::is_whole(block_.seat()))
      filled_[ring_.next()] = {reach(a.rows, row, rows),
                               reach(b_along_k ? b.rows : b.columns, column, columns)};
    ring_.end_fetch();
  }
  /// Waits for the oldest stage of those pending. Contains the block barrier.
  IR_DEVICE void await() { ring_.await(); }
  /// Adds the product of the stage that was awaited last.
  IR_DEVICE void multiply() {
    T* const a = stages_ + ring_.current() * stage_elements;
    T* const b = a + StagedA::elements;
    if (target::is_whole(block_.seat()))
      return detail::add_product_by_block<b_along_k, columns, StagedA, StagedB>(
          sums_, a, b, filled_[ring_.current()]);
    for_each_share([&](int thread, int held) {
      target::point(block_.seat());
#if IR_ON_CUDA
      if constexpr (HalfNumber<T>)
        return detail::add_product_by_warp<Places, b_along_k, StagedA, StagedB>(sums_ + held, a, b);
#endif
      detail::add_product_by_thread<Places, run_columns, b_along_k, StagedA, StagedB>(sums_ + held,
                                                                                      a, b, thread);
    });
  }

  /// function(row, column, first, second), for the sums at (row, column) in the tile and in the
  /// column behind it: `column` is even. Each pair of the tile comes to one thread of the block.
  template <class Function>
  IR_DEVICE void for_each_pair(Function function) const {
    if (target::is_whole(block_.seat())) {
      for (int i = 0; i < rows * columns; i += 2)
        function(size(i / columns), size(i % columns), sums_[i], sums_[i + 1]);
      return;
    }
    for_each_share([&](int thread, int held) {
      const int row = Places::first_row(thread);
      const int column = Places::first_column(thread);
      IR_UNROLLED for (int i = 0; i < Places::rows; ++i) {
        IR_UNROLLED for (int j = 0; j < Places::columns; j += 2) {
          const float* const pair = sums_ + held + i * Places::columns + j;
          function(size(row + Places::row(i)), size(column + Places::column(j)), pair[0], pair[1]);
        }
      }
    });
  }
  /// function(row, column, sums), for eight sums side by side: the first is at (row, column) in the
  /// tile. A short loop, for functions that are long. The sums take their way through the stages'
  /// memory: block-collective, and when no stage is pending.
  template <class Function>
  IR_DEVICE void for_each_eight(Function function) const {
    if (target::is_whole(block_.seat())) {
      for (int i = 0; i < rows * columns; i += 8)
        function(size(i / columns), size(i % columns), sums_ + i);
      return;
    }
    // One of the rows that each thread has at a time.
    constexpr int part_rows = rows / Places::rows;
    using Part = detail::StagedTile<float, part_rows, columns>;
    static_assert(Part::elements * sizeof(float) <= sizeof(T) * shape.stages * stage_elements);
    auto* const shared = reinterpret_cast<float*>(stages_);
    IR_ROLLED for (int part = 0; part < Places::rows; ++part) {
      block_.sync();
      for_each_share([&](int thread, int held) { put_row<Part>(shared, thread, held, part); });
      block_.sync();
      IR_ROLLED for (int i = block_.thread(); i < Part::elements / 8; i += block_.thread_count()) {
        const int row = 8 * i / columns;
        const int column = 8 * i % columns;
        float sums[8];
        detail::read_run<4>(sums, shared + Part::place(row, column));
        detail::read_run<4>(sums + 4, shared + Part::place(row, column + 4));
        function(size(row / 8 * Places::grid.rows + Places::row(part) + row % 8), size(column),
                 sums);
      }
    }
    block_.sync();
  }
  /// function(row, column, sum), for every sum of the tile.
  template <class Function>
  IR_DEVICE void for_each_result(Function function) const {
    for_each_pair([&](std::size_t row, std::size_t column, float first, float second) {
      function(row, column, first);
      function(row, column + 1, second);
    });
  }

 private:
  static constexpr bool b_along_k = layout == MatmulLayout::nk;
  static constexpr int run_columns = HalfNumber<T> || b_along_k ? 2 : 4;
  using StagedA = detail::StagedTile<T, rows, depth>;
  using StagedB = detail::StagedTile<T, b_along_k ? columns : depth, b_along_k ? depth : columns>;
  using Places = detail::SumPlaces<shape, run_columns>;
  static constexpr int stage_elements = StagedA::elements + StagedB::elements;
  using Stages = BlockMemory<T, shape.stages * stage_elements, TileProduct>;
  static_assert(depth % 16 == 0, "tensor cores take 16 elements of K at a time");

  IR_DEVICE static std::size_t size(int number) { return static_cast<std::size_t>(number); }
  IR_DEVICE static int reach(std::size_t extent, std::size_t first, int most) {
    if (first >= extent) return 0;
    return extent - first < static_cast<std::size_t>(most) ? static_cast<int>(extent - first)
                                                           : most;
  }
  /// function(thread, place of its first sum), for each of the GPU's threads whose work this is.
  template <class Function>
  IR_DEVICE void for_each_share(Function function) const {
    target::for_each_chunk<rows * columns, Places::count, shape.threads>(
        block_.seat(), [&](int place, int held) { function(place / Places::count, held); });
  }

  /// A thread's sums in one of its rows, to block memory.
  template <class Part>
  IR_DEVICE void put_row(float* to, int thread, int held, int row) const {
    const int first_row = Places::first_row(thread);
    const int to_row = first_row / Places::grid.rows * 8 + first_row % 8;
    const int column = Places::first_column(thread);
    // Registers have no addresses.
    IR_UNROLLED for (int i = 0; i < Places::rows; ++i) {
      if (i == row) {
        IR_UNROLLED for (int j = 0; j < Places::columns; j += 2) {
          const float* const pair = sums_ + held + i * Places::columns + j;
          detail::write_pair(to + Part::place(to_row, column + Places::column(j)), pair[0],
                             pair[1]);
        }
      }
    }
  }

  ABlock block_;
  Ring<shape.stages, shape.threads> ring_;
  T* stages_;
  float sums_[target::held_elements<rows * columns, Places::count, shape.threads>];
  /// What of each stage is there: for whole blocks, which leave out the rest.
  detail::Filled filled_[shape.stages];
};

/// Writes two neighbours, each rounded once, at (row, column) and in the column behind it; what
/// lies beyond the matrix is dropped. One access where its address allows it.
template <TileProductNumber T>
IR_DEVICE void store_pair(const Matrix<T>& to, std::size_t row, std::size_t column, float first,
                          float second) {
  if (row >= to.rows || column >= to.columns) return;
  struct Pair {
    T elements[2];
  };
  using Bits [[gnu::may_alias]] =
      std::conditional_t<sizeof(Pair) == 4, std::uint32_t, std::uint64_t>;
  T* const at = to.at(row, column);
  const Pair pair = {{convert<T>(first), convert<T>(second)}};
  const bool is_last = column + 1 == to.columns;
  if (!is_last && reinterpret_cast<std::uintptr_t>(at) % sizeof(Pair) == 0) {
    *reinterpret_cast<Bits*>(at) = __builtin_bit_cast(Bits, pair);
    return;
  }
  at[0] = pair.elements[0];
  if (!is_last) at[1] = pair.elements[1];
}

}  // namespace iridium
