// Errors of the CUDA runtime and driver as `Error`.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>

namespace iridium {

/// Throws unless `status` is success; says what was tried and what CUDA says. The runtime's last
/// error is cleared.
void check_cuda(cudaError_t status, const std::string& what);
/// The same for the driver, whose calls leave the runtime's last error alone.
void check_cuda(CUresult status, const std::string& what);

/// Where both name an error, runtime and driver give it the same number.
constexpr cudaError_t runtime_error(CUresult status) {
  return static_cast<cudaError_t>(status);
}
/// What CUDA says, and what a person can do about it where that is known.
std::string describe_cuda_error(cudaError_t status);

}  // namespace iridium
