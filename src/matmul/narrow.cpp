#include "matmul/narrow.h"

#include "matmul/launch.h"

namespace iridium {
namespace {

template <HalfNumber T, int parts>
void launch(const Problem& problem) {
  // As many rows to a block that all finish together.
  const auto processors = static_cast<std::size_t>(problem.processors.count);
  const std::size_t passes = parts_of(problem.columns, processors * narrow::block_rows);
  const std::size_t rows = parts_of(problem.columns, processors * passes);
  launch_product(
      problem, static_cast<int>(parts_of(problem.columns, rows)),
      NarrowProduct<T, parts>{
          {static_cast<T*>(problem.d), problem.rows, problem.columns, problem.d_pitch},
          {static_cast<const T*>(problem.a), problem.rows, problem.depth, problem.a_pitch},
          {static_cast<const T*>(problem.b), problem.columns, problem.depth, problem.b_pitch},
          static_cast<int>(rows)});
}

}  // namespace

void launch_narrow_product(const Problem& problem) {
  with_half_type(problem.type, [&]<class T>(std::type_identity<T>) {
    if (problem.rows <= 8)
      launch<T, 1>(problem);
    else
      launch<T, 2>(problem);
  });
}

KernelList narrow_product_kernels() {
  return {product_entry<NarrowProduct<fp16, 1>>(), product_entry<NarrowProduct<fp16, 2>>(),
          product_entry<NarrowProduct<bf16, 1>>(), product_entry<NarrowProduct<bf16, 2>>()};
}

}  // namespace iridium
