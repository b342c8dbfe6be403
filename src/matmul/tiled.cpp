#include "matmul/tiled.h"

#include <algorithm>

#include "matmul/launch.h"

namespace iridium {
namespace {

/// What a processor holds, at least; more tiles than that take turns.
constexpr std::size_t blocks_per_processor = 8;

template <class Kernel, class T, MatmulLayout layout>
void launch_tiles(const Problem& problem) {
  constexpr bool is_kn = layout == MatmulLayout::kn;
  const std::size_t most =
      static_cast<std::size_t>(problem.processors.count) * blocks_per_processor;
  const std::size_t tiles = typename Kernel::Grid(problem.rows, problem.columns).count();
  launch_product(
      problem, static_cast<int>(std::min(tiles, most)),
      Kernel{.a = {static_cast<const T*>(problem.a), problem.rows, problem.depth, problem.a_pitch},
             .b = {static_cast<const T*>(problem.b), is_kn ? problem.depth : problem.columns,
                   is_kn ? problem.columns : problem.depth, problem.b_pitch},
             .d = {static_cast<T*>(problem.d), problem.rows, problem.d_columns(), problem.d_pitch},
             .epilogue = problem.epilogue});
}

template <TileProductNumber T, MatmulLayout layout>
void launch(const Problem& problem) {
  constexpr TileProductShape large = large_tile<T>;
  const TileGrid<large.rows, large.columns> tiles(problem.rows, problem.columns);
  // A CPU counts as one, however many threads it has.
  const bool is_cpu = problem.processors.capability == 0;
  const std::size_t wanted =
      is_cpu ? blocks_per_processor : static_cast<std::size_t>(problem.processors.count);
  // The bits are the same.
  if (tiles.count() < wanted)
    launch_tiles<TiledProduct<T, layout, small_tile<T>>, T, layout>(problem);
  else
    launch_tiles<TiledProduct<T, layout, large>, T, layout>(problem);
}

}  // namespace

void launch_tiled_product(const Problem& problem) {
  with_tiled_form(problem.type, problem.layout,
                  [&]<class T, MatmulLayout layout> { launch<T, layout>(problem); });
}

KernelList tiled_product_kernels() {
  KernelList list;
  for_each_tiled_form([&]<class T, MatmulLayout layout> {
    list.push_back(product_entry<TiledProduct<T, layout, large_tile<T>>>());
    list.push_back(product_entry<TiledProduct<T, layout, small_tile<T>>>());
  });
  return list;
}

}  // namespace iridium
