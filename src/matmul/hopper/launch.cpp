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

bool allows_vectors(const void* data, std::size_t pitch, MatmulType type) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && pitch * size_of(type) % 16 == 0;
}

DataType tensor_type(MatmulType type) {
  switch (type) {
    case MatmulType::fp16:
      return DataType::fp16;
    case MatmulType::bf16:
      return DataType::bf16;
    case MatmulType::fp32:
      return DataType::fp32;
    case MatmulType::e4m3:
      break;
  }
  return DataType::uint8;
}

template <class T, class D, TileShape tile, bool b_along_k>
void launch(const Problem& problem) {
  constexpr int rows = tile.rows() * tile.cluster;
  constexpr int k_block = hopper::k_block<T>;
  const std::size_t row_tiles = parts_of(problem.rows, rows);
  const std::size_t tiles = row_tiles * parts_of(problem.columns, tile.columns);
  const int at_once = std::max(1, problem.processors.count / tile.blocks());
  const detail::StreamImpl& stream = detail::Access::stream(problem.stream);
  const auto map = [&](MatmulType type, const void* data, std::size_t down, std::size_t across,
                       std::size_t pitch, int box_rows) {
    return stream.make_tensor_map({tensor_type(type), data, down, across, pitch, box_rows});
  };
  hopper::Multiply<T, D, tile, b_along_k> kernel = {};
  hopper::Product<T, D>& product = kernel.product;
  const int b_rows = static_cast<int>(b_along_k ? problem.columns : problem.depth);
  const int b_columns = static_cast<int>(b_along_k ? problem.depth : problem.columns);
  product.a = {{},
               static_cast<const T*>(problem.a),
               problem.a_pitch,
               static_cast<int>(problem.rows),
               static_cast<int>(problem.depth)};
  product.b = {{}, static_cast<const T*>(problem.b), problem.b_pitch, b_rows, b_columns};
  product.loads_boxes = allows_vectors(problem.a, problem.a_pitch, problem.type) &&
                        allows_vectors(problem.b, problem.b_pitch, problem.type);
  if (product.loads_boxes) {
    product.a.map =
        map(problem.type, problem.a, problem.rows, problem.depth, problem.a_pitch, tile.rows());
    product.b.map = map(problem.type, problem.b, b_rows, b_columns, problem.b_pitch,
                        b_along_k ? tile.columns / tile.cluster : k_block);
  }
  product.stores_boxes = allows_vectors(problem.d, problem.d_pitch, problem.result) &&
                         HalfNumber<D> && tile.k_parts == 1 && problem.epilogue.is_identity;
  if (product.stores_boxes)
    product.d_map = map(problem.result, problem.d, problem.rows, problem.columns, problem.d_pitch,
                        hopper::panel_rows);
  product.d = {static_cast<D*>(problem.d), problem.rows, problem.d_columns(), problem.d_pitch};
  product.rows = static_cast<int>(problem.rows);
  product.columns = static_cast<int>(problem.columns);
  product.k_blocks = static_cast<int>(parts_of(problem.depth, k_block));
  product.band = static_cast<int>(band_of(row_tiles, at_once, rows, tile.columns));
  product.epilogue = problem.epilogue;
  const std::size_t clusters =
      tile.k_parts > 1 ? tiles : std::min(tiles, static_cast<std::size_t>(at_once));
  launch_product(problem, static_cast<int>(clusters) * tile.blocks(), kernel);
}

/// use.operator()<tile>() for the algorithm's tile.
template <class Use>
void with_tile(MatmulAlgorithm algorithm, Use use) {
  if (algorithm == MatmulAlgorithm::hopper_64x128)
    use.template operator()<hopper::tile_64x128>();
  else if (algorithm == MatmulAlgorithm::hopper_128x128)
    use.template operator()<hopper::tile_128x128>();
  else if (algorithm == MatmulAlgorithm::hopper_128x256)
    use.template operator()<hopper::tile_128x256>();
  else if (algorithm == MatmulAlgorithm::hopper_64x128_k4)
    use.template operator()<hopper::tile_64x128_k4>();
  else
    use.template operator()<hopper::tile_128x128_k2>();
}

/// fp8 products keep two sets of sums, for which the largest tile has no registers.
template <class T, TileShape tile>
constexpr bool has_kernel = !std::same_as<T, e4m3> || hopper::Geometry<tile>::accumulators <= 64;

template <class T, class D>
void add_kernels(KernelList& list) {
  for (const MatmulAlgorithm algorithm : matmul_algorithms()) {
    if (!is_hopper(algorithm)) continue;
    with_tile(algorithm, [&]<TileShape tile> {
      if constexpr (has_kernel<T, tile>) {
        list.push_back(product_entry<hopper::Multiply<T, D, tile, true>>());
        if constexpr (HalfNumber<T>)
          list.push_back(product_entry<hopper::Multiply<T, D, tile, false>>());
      }
    });
  }
}

}  // namespace

void launch_hopper_product(const Problem& problem, MatmulAlgorithm algorithm) {
  with_types(problem, [&]<class T, class D>(T, D) {
    with_tile(algorithm, [&]<TileShape tile> {
      if constexpr (has_kernel<T, tile>) {
        if (problem.layout == MatmulLayout::nk) return launch<T, D, tile, true>(problem);
        if constexpr (HalfNumber<T>) return launch<T, D, tile, false>(problem);
      }
    });
  });
}

KernelList hopper_product_kernels() {
  KernelList list;
  if (!has_hopper_kernels) return list;
  add_kernels<fp16, fp16>(list);
  add_kernels<bf16, bf16>(list);
  add_kernels<float, float>(list);
  add_kernels<e4m3, fp16>(list);
  add_kernels<e4m3, bf16>(list);
  return list;
}

}  // namespace iridium
