#include "device/matrix_kernels.h"

#include "iridium/device/atomic.h"

namespace iridium::test {
namespace {

using MatrixBlock = BlockOf<matrix_threads>;

template <class T>
struct MoveTile {
  Lane lane;
  MatrixWork<T> work;

  IR_DEVICE void operator()(MatrixBlock block) const {
    switch (work.cache) {
      case Cache::normal:
        return run(block, cache::normal);
      case Cache::streaming:
        return run(block, cache::streaming);
      case Cache::shared:
        return run(block, cache::shared);
    }
  }

 private:
  template <Cache C>
  IR_DEVICE void run(MatrixBlock block, CacheTag<C> hint) const {
    constexpr int N = matrix_rows;
    constexpr int M = matrix_columns;
    const Matrix<T>& matrix = work.matrix;
    const Matrix<const T> constant = {matrix.data, matrix.rows, matrix.columns, matrix.pitch};
    switch (work.call) {
      case MatrixCall::load:
        return keep(block, load<N, M>(block, matrix, work.row, work.column, hint));
      case MatrixCall::store:
        return store<N, M>(block, matrix, work.row, work.column, tile(block), hint);
      case MatrixCall::load_from:
        return keep(
            block, load_from<N, M>(block, lane, constant, work.place, work.row, work.column, hint));
      case MatrixCall::store_to:
        return store_to<N, M>(block, lane, matrix, work.place, work.row, work.column, tile(block),
                              hint);
      case MatrixCall::gather:
        return keep(block, gather<N, M>(block, lane, constant, work.rows, work.column, hint));
    }
  }

  using TileOfT = Tile<T, matrix_elements, matrix_threads>;

  IR_DEVICE TileOfT tile(MatrixBlock block) const {
    return load<matrix_elements>(block, work.elements, 0, matrix_elements);
  }
  IR_DEVICE void keep(MatrixBlock block, const TileOfT& tile) const {
    store(block, work.elements, 0, matrix_elements, tile);
  }
};

template <class From, class To>
struct CopyConverted {
  Lane lane;
  ConvertedCopy<From, To> work;

  IR_DEVICE void operator()(MatrixBlock block) const {
    constexpr int R = grid_rows;
    constexpr int C = grid_columns;
    const TestGrid grid(work.from, work.order, work.band);
    for (auto i = static_cast<std::size_t>(block.index()); i < grid.count();
         i += static_cast<std::size_t>(block.count())) {
      const auto [row, column] = grid.at(i);
      store_to<R, C>(block, lane, work.to, work.place, row, column,
                     convert<To>(load<R, C>(block, work.from, row, column)));
      if (block.is_leader()) atomic_add(block, work.visits + i, 1u);
    }
  }
};

struct WalkGrid {
  std::size_t rows;
  std::size_t columns;
  TileOrder order;
  std::size_t band;
  TestGrid::Corner* corners;
  std::size_t* count;

  IR_DEVICE void operator()(MatrixBlock block) const {
    const TestGrid grid(rows, columns, order, band);
    if (block.is_leader()) *count = grid.count();
    for (auto i = static_cast<std::size_t>(block.thread()); i < grid.count();
         i += static_cast<std::size_t>(block.thread_count()))
      corners[i] = grid.at(i);
  }
};

}  // namespace

template <class T>
void run_matrix(const Context& context, StreamRef& stream, const Lane& lane,
                const MatrixWork<T>& work) {
  context.launch(stream, 1, MoveTile<T>{lane, work});
}

template <class From, class To>
void run_converted_copy(const Context& context, StreamRef& stream, const Lane& lane,
                        const ConvertedCopy<From, To>& work) {
  context.launch(stream, work.blocks, CopyConverted<From, To>{lane, work});
}

void run_tile_grid(const Context& context, StreamRef& stream, std::size_t rows, std::size_t columns,
                   TileOrder order, std::size_t band, TestGrid::Corner* corners,
                   std::size_t* count) {
  context.launch(stream, 1, WalkGrid{rows, columns, order, band, corners, count});
}

template void run_matrix(const Context&, StreamRef&, const Lane&, const MatrixWork<std::uint8_t>&);
template void run_matrix(const Context&, StreamRef&, const Lane&, const MatrixWork<fp16>&);
template void run_matrix(const Context&, StreamRef&, const Lane&, const MatrixWork<float>&);
template void run_matrix(const Context&, StreamRef&, const Lane&, const MatrixWork<double>&);
template void run_converted_copy(const Context&, StreamRef&, const Lane&,
                                 const ConvertedCopy<float, float>&);
template void run_converted_copy(const Context&, StreamRef&, const Lane&,
                                 const ConvertedCopy<fp16, float>&);
template void run_converted_copy(const Context&, StreamRef&, const Lane&,
                                 const ConvertedCopy<float, fp16>&);

}  // namespace iridium::test
