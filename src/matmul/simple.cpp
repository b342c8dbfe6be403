#include "matmul/simple.h"

#include <algorithm>

#include "matmul/launch.h"

namespace iridium {
namespace {

template <MatmulInput T, MatmulResult<T> D, bool b_along_k>
void launch(const Problem& problem) {
  using Kernel = SimpleProduct<T, D, b_along_k>;
  // What a processor holds; more tiles than that take turns.
  constexpr std::size_t blocks_per_processor = 8;
  const std::size_t tiles =
      TileGrid<Kernel::rows, Kernel::columns>(problem.rows, problem.columns).count();
  const std::size_t most =
      static_cast<std::size_t>(problem.processors.count) * blocks_per_processor;
  launch_product(
      problem, static_cast<int>(std::min(tiles, most)),
      Kernel{.a = {static_cast<const T*>(problem.a), problem.rows, problem.depth, problem.a_pitch},
             .b = static_cast<const T*>(problem.b),
             .b_pitch = problem.b_pitch,
             .columns_of_b = problem.columns,
             .depth = problem.depth,
             .d = static_cast<D*>(problem.d),
             .d_pitch = problem.d_pitch,
             .epilogue = problem.epilogue});
}

template <MatmulInput T, MatmulResult<T> D>
void add_kernels(KernelList& list) {
  list.push_back(product_entry<SimpleProduct<T, D, false>>());
  list.push_back(product_entry<SimpleProduct<T, D, true>>());
}

}  // namespace

void launch_simple_product(const Problem& problem) {
  with_types(problem, [&]<class T, class D>(T, D) {
    if (problem.layout == MatmulLayout::nk)
      launch<T, D, true>(problem);
    else
      launch<T, D, false>(problem);
  });
}

KernelList simple_product_kernels() {
  KernelList list;
  add_kernels<fp16, fp16>(list);
  add_kernels<bf16, bf16>(list);
  add_kernels<float, float>(list);
  add_kernels<e4m3, fp16>(list);
  add_kernels<e4m3, bf16>(list);
  return list;
}

}  // namespace iridium
