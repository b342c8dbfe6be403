#include <algorithm>

#include "matmul/hopper/make_product.h"
#include "matmul/launch.h"

namespace iridium {

#if defined(IRIDIUM_HAS_SM90A)
const bool has_hopper_kernels = true;
#else
const bool has_hopper_kernels = false;
#endif

namespace {

using hopper::TileShape;

template <class T, class D, TileShape tile, bool b_along_k>
void launch(const Problem& problem) {
  hopper::Multiply<T, D, tile, b_along_k> kernel = {};
  kernel.product = hopper::make_product<T, D, tile, b_along_k>(problem);
  const std::size_t tiles = hopper::tile_count<tile>(problem);
  const std::size_t at_once = hopper::clusters_at_once<tile>(problem);
  const std::size_t clusters = tile.k_parts > 1 ? tiles : std::min(tiles, at_once);
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
