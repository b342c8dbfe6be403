#include "fused/all_gather_matmul/tiled.h"

#include <algorithm>

#include "fused/all_gather_matmul/launch.h"

namespace iridium {
namespace {

template <class T, MatmulLayout layout>
using Kernel = TiledGatherProduct<T, layout, small_tile<T>>;

template <class T, MatmulLayout layout>
void launch(const GatherProduct& call) {
  using Product = typename Kernel<T, layout>::Product;
  static_assert(staged_depth_unit % Product::depth == 0);
  const Problem& product = call.product;
  const GatherPieces pieces = plan_pieces(call, 2 * Product::rows);
  const std::size_t gathering = plan_gathering_blocks(call, pieces);
  const std::size_t tiles =
      TileGrid<Product::rows, Product::columns>(product.rows, product.columns).count();
  // What a processor holds; more tiles than that take turns.
  constexpr std::size_t blocks_per_processor = 2;
  const std::size_t multiplying =
      std::min(tiles, static_cast<std::size_t>(product.processors.count) * blocks_per_processor);
  const bool is_nk = layout == MatmulLayout::nk;
  launch_on_team(
      product.stream, call.team, "all_gather_matmul",
      {.blocks = static_cast<int>(gathering + multiplying)}, [&](const Lane& lane) {
        return Kernel<T, layout>{
            .lane = lane,
            .pieces = pieces,
            .shard = call.shard_of<T>(),
            .gathered = call.gathered_of<T>(),
            .b = {static_cast<const T*>(product.b), is_nk ? product.columns : product.depth,
                  is_nk ? product.depth : product.columns, product.b_pitch},
            .d = {static_cast<T*>(product.d), product.rows, product.d_columns(), product.d_pitch},
            .columns = product.columns,
            .epilogue = product.epilogue,
            .gathering_blocks = static_cast<std::uint32_t>(gathering)};
      });
}

}  // namespace

void launch_tiled_gather_product(const GatherProduct& call) {
  with_tiled_form(call.product.type, call.product.layout,
                  [&]<class T, MatmulLayout layout> { launch<T, layout>(call); });
}

KernelList tiled_gather_product_kernels() {
  KernelList list;
  for_each_tiled_form(
      [&]<class T, MatmulLayout layout> { list.push_back(product_entry<Kernel<T, layout>>()); });
  return list;
}

}  // namespace iridium
