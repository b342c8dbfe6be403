#include "fused/all_gather_matmul/hopper.h"

#include <algorithm>

#include "fused/all_gather_matmul/launch.h"
#include "matmul/hopper/make_product.h"
#include "matmul/launch.h"

namespace iridium {
namespace {

using hopper::TileShape;

template <class T, TileShape tile, bool b_along_k>
void launch(const GatherProduct& call) {
  static_assert(staged_depth_unit % hopper::k_block<T> == 0);
  const Problem& product = call.product;
  const GatherPieces pieces = plan_pieces(call, 2 * tile.rows());
  const std::size_t gathering = plan_gathering_blocks(call, pieces);
  // All at a time, with those that gather.
  const std::size_t room = hopper::clusters_at_once<tile>(product);
  const std::size_t multiplying = std::min(hopper::tile_count<tile>(product),
                                           room > gathering ? room - gathering : std::size_t{1});
  launch_on_team(product.stream, call.team, "all_gather_matmul",
                 {.blocks = static_cast<int>(gathering + multiplying)}, [&](const Lane& lane) {
                   return hopper::GatherMultiply<T, T, tile, b_along_k>{
                       .lane = lane,
                       .product = hopper::make_product<T, T, tile, b_along_k>(product),
                       .pieces = pieces,
                       .shard = call.shard_of<T>(),
                       .gathered = call.gathered_of<T>(),
                       .gathering_blocks = static_cast<std::uint32_t>(gathering)};
                 });
}

/// use.operator()<T, tile>() for what the call is.
template <class Use>
void with_kernel(MatmulType type, MatmulAlgorithm algorithm, Use use) {
  const auto with_tile = [&]<class T>(T) {
    if (algorithm == MatmulAlgorithm::hopper_64x128)
      use.template operator()<T, hopper::tile_64x128>();
    else
      use.template operator()<T, hopper::tile_128x256>();
  };
  if (type == MatmulType::fp16)
    with_tile(fp16());
  else if (type == MatmulType::bf16)
    with_tile(bf16());
  else
    with_tile(float());
}

}  // namespace

void launch_hopper_gather_product(const GatherProduct& call, MatmulAlgorithm algorithm) {
  with_kernel(call.product.type, algorithm, [&]<class T, TileShape tile> {
    if (call.product.layout == MatmulLayout::nk) return launch<T, tile, true>(call);
    if constexpr (HalfNumber<T>) launch<T, tile, false>(call);
  });
}

KernelList hopper_gather_product_kernels() {
  KernelList list;
  if (!has_hopper_kernels) return list;
  for (const MatmulType type : {MatmulType::fp16, MatmulType::bf16, MatmulType::fp32})
    for (const MatmulAlgorithm algorithm :
         {MatmulAlgorithm::hopper_64x128, MatmulAlgorithm::hopper_128x256})
      with_kernel(type, algorithm, [&]<class T, TileShape tile> {
        list.push_back(product_entry<hopper::GatherMultiply<T, T, tile, true>>());
        if constexpr (HalfNumber<T>)
          list.push_back(product_entry<hopper::GatherMultiply<T, T, tile, false>>());
      });
  return list;
}

}  // namespace iridium
