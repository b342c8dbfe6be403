#include "matmul/narrow.h"

#include "matmul/launch.h"

namespace iridium {
namespace {

template <HalfNumber T, int parts, bool vectors>
void launch(const Problem& problem) {
  // As many rows to a block that all finish together.
  const auto processors = static_cast<std::size_t>(problem.processors.count);
  const std::size_t unit = problem.epilogue.gated ? 2 : 1;
  const std::size_t passes = parts_of(problem.columns, processors * narrow::block_rows);
  const std::size_t rows = parts_of(problem.columns, processors * passes * unit) * unit;
  launch_product(
      problem, static_cast<int>(parts_of(problem.columns, rows)),
      NarrowProduct<T, parts, vectors>{
          {static_cast<T*>(problem.d), problem.rows, problem.d_columns(), problem.d_pitch},
          {static_cast<const T*>(problem.a), problem.rows, problem.depth, problem.a_pitch},
          {static_cast<const T*>(problem.b), problem.columns, problem.depth, problem.b_pitch},
          static_cast<int>(rows),
          problem.epilogue});
}

bool allows_vectors(const Problem& problem) {
  return problem.depth % 8 == 0 &&
         rows_begin_in_vectors(problem.a, problem.a_pitch, problem.type) &&
         rows_begin_in_vectors(problem.b, problem.b_pitch, problem.type);
}

template <HalfNumber T, int parts>
void launch(const Problem& problem) {
  if (allows_vectors(problem))
    launch<T, parts, true>(problem);
  else
    launch<T, parts, false>(problem);
}

template <HalfNumber T>
void launch(const Problem& problem) {
  if (problem.rows <= 8)
    launch<T, 1>(problem);
  else
    launch<T, 2>(problem);
}

template <HalfNumber T>
void add_kernels(KernelList& list) {
  list.push_back(product_entry<NarrowProduct<T, 1, false>>());
  list.push_back(product_entry<NarrowProduct<T, 1, true>>());
  list.push_back(product_entry<NarrowProduct<T, 2, false>>());
  list.push_back(product_entry<NarrowProduct<T, 2, true>>());
}

}  // namespace

void launch_narrow_product(const Problem& problem) {
  if (problem.type == MatmulType::fp16)
    launch<fp16>(problem);
  else
    launch<bf16>(problem);
}

KernelList narrow_product_kernels() {
  KernelList list;
  add_kernels<fp16>(list);
  add_kernels<bf16>(list);
  return list;
}

}  // namespace iridium
