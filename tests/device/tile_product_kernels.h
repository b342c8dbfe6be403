// What the tests of tile products run, told without kernel code; see block_kernels.h.
#pragma once

#include "iridium/context.h"
#include "iridium/device/matmul.h"

namespace iridium::test {

/// How a kernel goes about it.
enum class ProductForm {
  run,       ///< one call
  by_calls,  ///< fetch, await and multiply
  added,     ///< the first 40 elements of K, and then the others
};

/// How many shapes of tiles the kernels have.
inline constexpr int product_shapes = 3;

template <class T>
struct TileProductCase {
  int shape;  ///< below `product_shapes`
  MatmulLayout layout;
  ProductForm form;
  Matrix<float> d;
  Matrix<int> seen;  ///< of D's shape: 1 is added for each result, 10 for the same among eight
  Matrix<const T> a;
  Matrix<const T> b;
};
/// Queues the case's kernel. Exists for fp16, bf16 and float.
template <TileProductNumber T>
void run_tile_product(const Context& context, StreamRef& stream, int blocks,
                      const TileProductCase<T>& work);

}  // namespace iridium::test
