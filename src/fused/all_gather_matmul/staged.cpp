#include "fused/all_gather_matmul/staged.h"

#include <algorithm>

#include "fused/all_gather_matmul/launch.h"

namespace iridium {
namespace {

/// Pieces of some hundred KiB, larger ones where there were more of them than a lane has room for.
GatherPieces pieces_of(const GatherProduct& call, std::size_t row_unit) {
  const Problem& product = call.product;
  GatherPieces pieces = {.rows = product.rows,
                         .depth = product.depth,
                         .shard_rows = call.shard_rows,
                         .shard_depth = call.shard_depth,
                         .piece_rows = row_unit,
                         .piece_depth = call.piece_depth != 0 ? call.piece_depth : 1024,
                         .down = 0,
                         .across = 0,
                         .first_row = 0};
  const auto count = [&] {
    pieces.down = parts_of(pieces.rows, pieces.piece_rows);
    pieces.across = parts_of(pieces.depth, pieces.piece_depth);
    return pieces.down * pieces.across;
  };
  while (count() > max_pieces) (pieces.down > 1 ? pieces.piece_rows : pieces.piece_depth) *= 2;
  if (pieces.shard_depth == pieces.depth)
    pieces.first_row =
        static_cast<std::size_t>(call.team.rank()) * pieces.shard_rows / pieces.piece_rows;
  return pieces;
}

template <class T, MatmulLayout layout>
using Kernel = StagedGatherProduct<T, layout, small_tile<T>>;

template <class T, MatmulLayout layout>
void launch(const GatherProduct& call) {
  using Product = typename Kernel<T, layout>::Product;
  static_assert(staged_depth_unit % Product::depth == 0);
  const Problem& product = call.product;
  const GatherPieces pieces = pieces_of(call, 2 * Product::rows);
  const auto processors = static_cast<std::size_t>(product.processors.count);
  const std::size_t gathering = std::min(
      pieces.count(), call.gathering_blocks != 0 ? static_cast<std::size_t>(call.gathering_blocks)
                                                 : std::max<std::size_t>(1, processors / 8));
  const std::size_t tiles =
      TileGrid<Product::rows, Product::columns>(product.rows, product.columns).count();
  // What a processor holds; more tiles than that take turns.
  constexpr std::size_t blocks_per_processor = 2;
  const std::size_t multiplying = std::min(tiles, processors * blocks_per_processor);
  const bool is_nk = layout == MatmulLayout::nk;
  launch_on_team(
      product.stream, call.team, "all_gather_matmul",
      {.blocks = static_cast<int>(gathering + multiplying)}, [&](const Lane& lane) {
        return Kernel<T, layout>{
            .lane = lane,
            .pieces = pieces,
            .shard = {static_cast<const T*>(call.shard), call.shard_rows, call.shard_depth,
                      call.shard_pitch},
            .gathered = {static_cast<T*>(call.gathered), product.rows, product.depth,
                         product.a_pitch},
            .b = {static_cast<const T*>(product.b), is_nk ? product.columns : product.depth,
                  is_nk ? product.depth : product.columns, product.b_pitch},
            .d = {static_cast<T*>(product.d), product.rows, product.d_columns(), product.d_pitch},
            .columns = product.columns,
            .epilogue = product.epilogue,
            .gathering_blocks = static_cast<std::uint32_t>(gathering)};
      });
}

template <class T>
void launch(const GatherProduct& call) {
  if (call.product.layout == MatmulLayout::nk)
    launch<T, MatmulLayout::nk>(call);
  else
    launch<T, MatmulLayout::kn>(call);
}

template <class T>
void add_kernels(KernelList& list) {
  list.push_back(product_entry<Kernel<T, MatmulLayout::kn>>());
  list.push_back(product_entry<Kernel<T, MatmulLayout::nk>>());
}

}  // namespace

void launch_staged_gather_product(const GatherProduct& call) {
  switch (call.product.type) {
    case MatmulType::fp16:
      return launch<fp16>(call);
    case MatmulType::bf16:
      return launch<bf16>(call);
    case MatmulType::fp32:
      return launch<float>(call);
    case MatmulType::e4m3:
      break;
  }
  throw Error(Errc::unsupported, "all_gather_matmul: staged has no kernel for e4m3");
}

KernelList all_gather_matmul_kernels() {
  KernelList list;
  add_kernels<fp16>(list);
  add_kernels<bf16>(list);
  add_kernels<float>(list);
  return list;
}

}  // namespace iridium
