// A matrix product on its way to its kernel. Files with kernels include this.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"
#include "iridium/device/matrix.h"
#include "iridium/matmul.h"
#include "matmul/epilogue.h"
#include "runtime/access.h"
#include "runtime/library_kernels.h"

namespace iridium {

using detail::MatmulType;

/// Shapes and addresses are checked.
struct Problem {
  StreamRef& stream;
  MatmulType type;    ///< of A and B
  MatmulType result;  ///< of D
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
  bool tf32 = false;
  Epilogue epilogue = {};
  Processors processors = {};

  std::size_t d_columns() const { return epilogue.gated ? columns / 2 : columns; }
};

/// Bytes of an element.
constexpr std::size_t size_of(MatmulType type) {
  if (type == MatmulType::fp32) return 4;
  return type == MatmulType::e4m3 ? 1 : 2;
}

/// The elements as other parts of the library know them: e4m3 as bytes.
constexpr DataType data_type(MatmulType type) {
  switch (type) {
    case MatmulType::fp16:
      return DataType::fp16;
    case MatmulType::bf16:
      return DataType::bf16;
    case MatmulType::fp32:
      return DataType::fp32;
    case MatmulType::e4m3:
      break;
  }
  return DataType::uint8;
}

/// Whether every row of a matrix begins at a multiple of 16 bytes.
inline bool rows_begin_in_vectors(const void* data, std::size_t pitch, MatmulType type) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && pitch * size_of(type) % 16 == 0;
}

/// How many parts of `part` hold `count`.
constexpr std::size_t parts_of(std::size_t count, std::size_t part) {
  return count / part + (count % part != 0 ? 1 : 0);
}

/// use(T(), D()) for the types of the inputs and of the result.
template <class Use>
void with_types(const Problem& problem, Use use) {
  const bool is_fp16 = problem.result == MatmulType::fp16;
  switch (problem.type) {
    case MatmulType::fp16:
      return use(fp16(), fp16());
    case MatmulType::bf16:
      return use(bf16(), bf16());
    case MatmulType::fp32:
      return use(float(), float());
    case MatmulType::e4m3:
      return is_fp16 ? use(e4m3(), fp16()) : use(e4m3(), bf16());
  }
}

/// use.operator()<T, layout>() for products of a type that tile products have.
template <class Use>
void with_tiled_form(MatmulType type, MatmulLayout layout, Use use) {
  const auto with_layout = [&]<class T>(T) {
    if (layout == MatmulLayout::nk)
      use.template operator()<T, MatmulLayout::nk>();
    else
      use.template operator()<T, MatmulLayout::kn>();
  };
  if (type == MatmulType::fp16)
    with_layout(fp16());
  else if (type == MatmulType::bf16)
    with_layout(bf16());
  else
    with_layout(float());
}
/// The same for all types and layouts.
template <class Use>
void for_each_tiled_form(Use use) {
  for (const MatmulType type : {MatmulType::fp16, MatmulType::bf16, MatmulType::fp32})
    for (const MatmulLayout layout : matmul_layouts()) with_tiled_form(type, layout, use);
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
