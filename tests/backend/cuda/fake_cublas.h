// A cuBLAS of tests, a library of its own: it multiplies on the CPU by what it is told.
#pragma once

#include <cublas_v2.h>

#include <cstddef>
#include <string>
#include <vector>

namespace iridium::test {

/// What it was asked for, and what it answers.
struct FakeCublas {
  std::vector<std::string> calls;  ///< names without "cublas", in order
  int handles = 0;
  cudaStream_t stream = nullptr;
  /// Of the handle: gone when a stream is set, as with the real one.
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  unsigned int math_mode = 0;
  cublasComputeType_t compute = {};
  cublasStatus_t answer = CUBLAS_STATUS_SUCCESS;  ///< to products
};

}  // namespace iridium::test

extern "C" iridium::test::FakeCublas* fake_cublas();
