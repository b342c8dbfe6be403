// A matrix product on its way to its kernel. Files with kernels include this.
#pragma once

#include <cstddef>

#include "backend/backend.h"
#include "iridium/device/matrix.h"
#include "iridium/matmul.h"
#include "runtime/access.h"
#include "runtime/library_kernels.h"

namespace iridium {

/// Shapes and addresses are checked.
struct Problem {
  StreamRef& stream;
  DataType type;
  void* d;
  const void* a;
  const void* b;
  std::size_t rows;     ///< M
  std::size_t columns;  ///< N
  std::size_t depth;    ///< K
  std::size_t d_pitch;
  std::size_t a_pitch;
  std::size_t b_pitch;
  MatmulLayout layout;
  Processors processors;
};

/// How many parts of `part` hold `count`.
constexpr std::size_t parts_of(std::size_t count, std::size_t part) {
  return count / part + (count % part != 0 ? 1 : 0);
}

/// use(std::type_identity<T>()) for the type that `type` names: fp16 or bf16.
template <class Use>
void with_half_type(DataType type, Use use) {
  if (type == DataType::fp16)
    use(std::type_identity<fp16>());
  else
    use(std::type_identity<bf16>());
}

/// Launches `blocks` blocks of `kernel` on the problem's stream.
template <class Kernel>
void launch_product(const Problem& problem, int blocks, const Kernel& kernel) {
  detail::Access::stream(problem.stream)
      .launch_kernel(detail::kernel_entry<Kernel, detail::ThisCompiler>(), &kernel, blocks);
}

template <class Kernel>
const detail::KernelEntry* product_entry() {
  return &detail::kernel_entry<Kernel, detail::ThisCompiler>();
}

}  // namespace iridium
