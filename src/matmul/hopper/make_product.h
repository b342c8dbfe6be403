// What a Hopper kernel is given, from a problem.
#pragma once

#include <algorithm>
#include <cmath>

#include "matmul/hopper/kernel.h"
#include "matmul/problem.h"

namespace iridium::hopper {

/// How many clusters an otherwise idle GPU runs at a time.
template <TileShape tile>
std::size_t clusters_at_once(const Problem& problem) {
  return static_cast<std::size_t>(std::max(1, problem.processors.count / tile.blocks()));
}

/// Rows of the clusters' tiles.
template <TileShape tile>
std::size_t tile_rows(const Problem& problem) {
  return parts_of(problem.rows, tile.rows() * tile.cluster);
}
template <TileShape tile>
std::size_t tile_count(const Problem& problem) {
  return tile_rows<tile>(problem) * parts_of(problem.columns, tile.columns);
}

/// Rows of tiles that are done together, so that as many tiles as run at the same time are close to
/// a square, and bands are equally high.
template <TileShape tile>
int band_of(const Problem& problem) {
  const std::size_t rows = tile_rows<tile>(problem);
  const double shape = static_cast<double>(tile.columns) / (tile.rows() * tile.cluster);
  const long square =
      std::lround(std::sqrt(static_cast<double>(clusters_at_once<tile>(problem)) * shape));
  const std::size_t bands = parts_of(rows, static_cast<std::size_t>(std::max(1L, square)));
  return static_cast<int>(parts_of(rows, bands));
}

template <class T, class D, TileShape tile, bool b_along_k>
Product<T, D> make_product(const Problem& problem) {
  const detail::StreamImpl& stream = detail::Access::stream(problem.stream);
  const auto map = [&](MatmulType type, const void* data, std::size_t rows, std::size_t columns,
                       std::size_t pitch, int box_rows) {
    return stream.make_tensor_map({data_type(type), data, rows, columns, pitch, box_rows});
  };
  const std::size_t b_rows = b_along_k ? problem.columns : problem.depth;
  const std::size_t b_columns = b_along_k ? problem.depth : problem.columns;
  Product<T, D> product = {};
  product.a = {{},
               static_cast<const T*>(problem.a),
               problem.a_pitch,
               static_cast<int>(problem.rows),
               static_cast<int>(problem.depth)};
  product.b = {{},
               static_cast<const T*>(problem.b),
               problem.b_pitch,
               static_cast<int>(b_rows),
               static_cast<int>(b_columns)};
  product.loads_boxes = rows_begin_in_vectors(problem.a, problem.a_pitch, problem.type) &&
                        rows_begin_in_vectors(problem.b, problem.b_pitch, problem.type);
  if (product.loads_boxes) {
    product.a.map =
        map(problem.type, problem.a, problem.rows, problem.depth, problem.a_pitch, tile.rows());
    product.b.map = map(problem.type, problem.b, b_rows, b_columns, problem.b_pitch,
                        b_along_k ? tile.columns / tile.cluster : k_block<T>);
  }
  product.d = {static_cast<D*>(problem.d), problem.rows, problem.d_columns(), problem.d_pitch};
  product.stores_boxes = rows_begin_in_vectors(problem.d, problem.d_pitch, problem.result) &&
                         HalfNumber<D> && tile.k_parts == 1 && problem.epilogue.is_identity;
  if (product.stores_boxes)
    product.d_map =
        map(problem.result, problem.d, problem.rows, problem.columns, problem.d_pitch, panel_rows);
  product.rows = static_cast<int>(problem.rows);
  product.columns = static_cast<int>(problem.columns);
  product.k_blocks = static_cast<int>(parts_of(problem.depth, k_block<T>));
  product.band = band_of<tile>(problem);
  product.epilogue = problem.epilogue;
  return product;
}

}  // namespace iridium::hopper
