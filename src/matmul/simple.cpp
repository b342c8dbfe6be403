#include "matmul/simple.h"

#include <algorithm>

#include "matmul/launch.h"

namespace iridium {
namespace {

template <HalfNumber T, bool b_along_k>
void launch(const Problem& problem) {
  using Kernel = SimpleProduct<T, b_along_k>;
  const Kernel kernel = {
      {static_cast<T*>(problem.d), problem.rows, problem.columns, problem.d_pitch},
      {static_cast<const T*>(problem.a), problem.rows, problem.depth, problem.a_pitch},
      static_cast<const T*>(problem.b),
      problem.b_pitch,
      problem.depth};
  // What a processor holds; more tiles than that take turns.
  constexpr std::size_t blocks_per_processor = 8;
  const std::size_t tiles = TileGrid<Kernel::rows, Kernel::columns>(kernel.d).count();
  const std::size_t most =
      static_cast<std::size_t>(problem.processors.count) * blocks_per_processor;
  launch_product(problem, static_cast<int>(std::min(tiles, most)), kernel);
}

}  // namespace

void launch_simple_product(const Problem& problem) {
  with_half_type(problem.type, [&]<class T>(std::type_identity<T>) {
    if (problem.layout == MatmulLayout::nk)
      launch<T, true>(problem);
    else
      launch<T, false>(problem);
  });
}

KernelList simple_product_kernels() {
  return {product_entry<SimpleProduct<fp16, false>>(), product_entry<SimpleProduct<fp16, true>>(),
          product_entry<SimpleProduct<bf16, false>>(), product_entry<SimpleProduct<bf16, true>>()};
}

}  // namespace iridium
