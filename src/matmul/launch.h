#pragma once

#include "matmul/problem.h"

namespace iridium {

void launch_simple_product(const Problem& problem);
/// Not of e4m3.
void launch_tiled_product(const Problem& problem);
void launch_narrow_product(const Problem& problem);
/// `algorithm` is one of Hopper's.
void launch_hopper_product(const Problem& problem, MatmulAlgorithm algorithm);

/// The stream's first one allocates.
void launch_cublas_product(const Problem& problem);

/// Whether it is one of Hopper's.
constexpr bool is_hopper(MatmulAlgorithm algorithm) {
  return algorithm >= MatmulAlgorithm::hopper_64x128 &&
         algorithm <= MatmulAlgorithm::hopper_128x128_k2;
}

/// Whether the build has code for Hopper.
extern const bool has_hopper_kernels;

/// Every kernel, to be loaded in advance.
KernelList matmul_kernels();

KernelList simple_product_kernels();
KernelList tiled_product_kernels();
KernelList narrow_product_kernels();
KernelList hopper_product_kernels();

}  // namespace iridium
