// The smallest kernels that read and write memory through the window.
#include "backend/cuda/gpu_test_base.h"

namespace iridium::test {
namespace {

__global__ void count_up(std::uint32_t* to, std::uint32_t first, int count) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count;
       i += static_cast<int>(gridDim.x * blockDim.x))
    to[i] = first + static_cast<std::uint32_t>(i);
}

__global__ void sum_up(const std::uint32_t* from, int count, std::uint64_t* sum) {
  std::uint64_t total = 0;
  for (int i = 0; i < count; ++i) total += from[i];
  *sum = total;
}

}  // namespace

bool gpu_is_here() {
  int count = 0;
  const bool here = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  static_cast<void>(cudaGetLastError());
  return here;
}

cudaError_t launch_count_up(cudaStream_t stream, std::uint32_t* to, std::uint32_t first,
                            int count) {
  count_up<<<4, 128, 0, stream>>>(to, first, count);
  return cudaGetLastError();
}

cudaError_t launch_sum(cudaStream_t stream, const std::uint32_t* from, int count,
                       std::uint64_t* sum) {
  sum_up<<<1, 1, 0, stream>>>(from, count, sum);
  return cudaGetLastError();
}

}  // namespace iridium::test
