// Errors of the CUDA runtime and driver as `Error`.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>

namespace iridium {

/// Throws unless `status` is success; says what was tried and what CUDA says. The error is cleared.
void check_cuda(cudaError_t status, const std::string& what);
void check_cuda(CUresult status, const std::string& what);

}  // namespace iridium
