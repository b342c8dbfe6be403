#include <algorithm>
#include <cmath>

#include "matmul/hopper/kernel.h"
#include "matmul/launch.h"

namespace iridium {

#if defined(IRIDIUM_HAS_SM90A)
const bool has_hopper_kernels = true;
#else
const bool has_hopper_kernels = false;
#endif

namespace {

using hopper::TileShape;

/// Rows of tiles that are done together, so that as many tiles as run at the same time are close to
/// a square, and bands are equally high.
std::size_t band_of(std::size_t row_tiles, int at_once, double rows, double columns) {
  const long square = std::lround(std::sqrt(at_once * columns / rows));
  const std::size_t bands = parts_of(row_tiles, static_cast<std::size_t>(std::max(1L, square)));
  return parts_of(row_tiles, bands);
}

bool allows_stores(const Problem& problem) {
  return reinterpret_cast<std::uintptr_t>(problem.d) % 16 == 0 && problem.d_pitch % 8 == 0;
}

template <HalfNumber T, TileShape tile, bool b_along_k>
void launch(const Problem& problem) {
  constexpr int rows = tile.rows() * tile.cluster;
  const std::size_t row_tiles = parts_of(problem.rows, rows);
  const std::size_t tiles = row_tiles * parts_of(problem.columns, tile.columns);
  const int clusters = std::max(1, problem.processors.count / tile.cluster);
  const detail::StreamImpl& stream = detail::Access::stream(problem.stream);
  const auto map = [&](const void* data, std::size_t down, std::size_t across, std::size_t pitch,
                       int box_rows) {
    return stream.make_tensor_map({problem.type, data, down, across, pitch, box_rows});
  };
  hopper::Multiply<T, tile, b_along_k> kernel = {};
  hopper::Product<T>& product = kernel.product;
  product.a = map(problem.a, problem.rows, problem.depth, problem.a_pitch, tile.rows());
  product.b =
      b_along_k ? map(problem.b, problem.columns, problem.depth, problem.b_pitch,
                      tile.columns / tile.cluster)
                : map(problem.b, problem.depth, problem.columns, problem.b_pitch, hopper::k_block);
  product.stores_boxes = allows_stores(problem);
  if (product.stores_boxes)
    product.d = map(problem.d, problem.rows, problem.columns, problem.d_pitch, hopper::panel_rows);
  product.d_data = static_cast<T*>(problem.d);
  product.d_pitch = problem.d_pitch;
  product.rows = static_cast<int>(problem.rows);
  product.columns = static_cast<int>(problem.columns);
  product.k_blocks = static_cast<int>(parts_of(problem.depth, hopper::k_block));
  product.band = static_cast<int>(band_of(row_tiles, clusters, rows, tile.columns));
  const int used = static_cast<int>(std::min(tiles, static_cast<std::size_t>(clusters)));
  launch_product(problem, used * tile.cluster, kernel);
}

template <HalfNumber T, TileShape tile>
void launch(const Problem& problem) {
  if (problem.layout == MatmulLayout::nk)
    launch<T, tile, true>(problem);
  else
    launch<T, tile, false>(problem);
}

template <HalfNumber T, TileShape tile>
void add_kernels(KernelList& list) {
  list.push_back(product_entry<hopper::Multiply<T, tile, false>>());
  list.push_back(product_entry<hopper::Multiply<T, tile, true>>());
}

}  // namespace

void launch_hopper_product(const Problem& problem, MatmulAlgorithm algorithm) {
  with_half_type(problem.type, [&]<class T>(std::type_identity<T>) {
    if (algorithm == MatmulAlgorithm::hopper_64x128)
      launch<T, hopper::tile_64x128>(problem);
    else if (algorithm == MatmulAlgorithm::hopper_128x128)
      launch<T, hopper::tile_128x128>(problem);
    else
      launch<T, hopper::tile_128x256>(problem);
  });
}

KernelList hopper_product_kernels() {
  KernelList list;
  if (!has_hopper_kernels) return list;
  for (const DataType type : {DataType::fp16, DataType::bf16})
    with_half_type(type, [&]<class T>(std::type_identity<T>) {
      add_kernels<T, hopper::tile_64x128>(list);
      add_kernels<T, hopper::tile_128x128>(list);
      add_kernels<T, hopper::tile_128x256>(list);
    });
  return list;
}

}  // namespace iridium
