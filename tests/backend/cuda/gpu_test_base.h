// What tests on a GPU share.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace iridium::test {

bool gpu_is_here();

/// A test that needs a GPU.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gpu_is_here()) GTEST_SKIP() << "no GPU here";
  }
};

/// Launches a kernel that sets `to[i]` to `first + i`: `to` may be any rank's memory.
cudaError_t launch_count_up(cudaStream_t stream, std::uint32_t* to, std::uint32_t first, int count);
/// Launches a kernel that adds up `count` elements into `*sum`.
cudaError_t launch_sum(cudaStream_t stream, const std::uint32_t* from, int count,
                       std::uint64_t* sum);

}  // namespace iridium::test
