// The same binary with and without a driver.
#include <gtest/gtest.h>

#include <algorithm>

#include "backend/backend.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/gpu_test_base.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

BackendInfo cuda_info() {
  const auto backends = describe_backends();
  return *std::find_if(backends.begin(), backends.end(),
                       [](const BackendInfo& info) { return info.kind == BackendKind::cuda; });
}

TEST(CudaAvailability, IsWhatTheMachineHasAndSaysWhyNot) {
  const BackendInfo info = cuda_info();
  EXPECT_EQ(info.available, gpu_is_here());
  EXPECT_EQ(info.reason.empty(), info.available) << info.reason;
  EXPECT_EQ(info.devices.empty(), !info.available);
  EXPECT_EQ(why_no_cuda(), info.reason);
}

TEST(CudaAvailability, WithoutAGpuTheHostIsChosenAndCudaRefusedWithTheReason) {
  if (gpu_is_here()) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(make_backend({})->kind(), BackendKind::host);
  const Error error =
      expect_error(Errc::unsupported, [] { make_backend({.kind = BackendKind::cuda}); });
  EXPECT_NE(std::string(error.what()).find(cuda_info().reason), std::string::npos) << error.what();
  expect_error(Errc::unsupported,
               [] { Context context(ContextOptions{.backend = BackendKind::cuda}); });
}

TEST(CudaAvailability, WithAGpuItIsChosenButForThreads) {
  if (!gpu_is_here()) GTEST_SKIP() << "no GPU here";
  EXPECT_EQ(make_backend({})->kind(), BackendKind::cuda);
  spawn(2, [](Context& context) { EXPECT_EQ(context.backend(), BackendKind::host); });
}

}  // namespace
}  // namespace iridium::test
