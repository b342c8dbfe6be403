// Tensor maps, of a driver that only notes what it is asked for, and where there are none.
#include "backend/cuda/tensor_map.h"

#include <gtest/gtest.h>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/fake_driver.h"
#include "backend/host/host_stream.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

TEST(TensorMaps, DescribeTheMatrix) {
  FakeMachine machine(FakeMachine::gpus(1));
  alignas(16) std::byte memory[16] = {};
  const TensorMap first = encode_tensor_map({DataType::bf16, memory, 300, 1000, 1024, 128});
  const TensorMap second = encode_tensor_map({DataType::fp16, memory, 1, 8, 8, 64});
  EXPECT_EQ(first.words[0], 0u);
  EXPECT_EQ(second.words[0], 1u);
  ASSERT_EQ(machine.tensor_maps().size(), 2u);
  const FakeTensorMap& map = machine.tensor_maps()[0];
  EXPECT_EQ(map.type, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  EXPECT_EQ(map.address, memory);
  EXPECT_EQ(map.sizes, (std::vector<cuuint64_t>{1000, 300}));
  EXPECT_EQ(map.strides, std::vector<cuuint64_t>{2048});
  EXPECT_EQ(map.box, (std::vector<cuuint32_t>{64, 128}));
  EXPECT_EQ(map.swizzle, CU_TENSOR_MAP_SWIZZLE_128B);
  EXPECT_EQ(machine.tensor_maps()[1].type, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
}

TEST(TensorMaps, ThatTheDriverRefusesAreErrorsWithTheNumbers) {
  FakeMachine machine(FakeMachine::gpus(1));
  machine.fail("cuTensorMapEncodeTiled", CUDA_ERROR_INVALID_VALUE);
  const Error error = expect_error(Errc::invalid_argument, [] {
    encode_tensor_map({DataType::bf16, nullptr, 300, 1000, 1001, 128});
  });
  for (const char* part :
       {"300 rows", "1000 columns", "1001 elements of bf16", "128 rows", "error 1"})
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  expect_error(Errc::invalid_argument,
               [] { encode_tensor_map({DataType::fp32, nullptr, 1, 1, 1, 1}); });
}

TEST(TensorMaps, AreNotOnCpus) {
  const auto stream = make_host_stream();
  const Error error = expect_error(Errc::unsupported, [&] {
    static_cast<void>(stream->make_tensor_map({DataType::bf16, nullptr, 1, 1, 1, 1}));
  });
  EXPECT_NE(std::string(error.what()).find("the CPUs"), std::string::npos) << error.what();
  stream->close();
}

/// A kernel as the library knows it, without its code.
detail::KernelEntry kernel_with(int block_bytes, int cluster) {
  return {.name = "AKernel",
          .bytes = 16,
          .threads = 64,
          .block_bytes = block_bytes,
          .cluster = cluster,
          .run_on_host = nullptr,
          .launch_on_cuda = nullptr,
          .load_on_cuda = nullptr,
          .fit_on_cuda = nullptr};
}

TEST(KernelNeeds, AreComparedWithWhatTheGpuHas) {
  std::vector<FakeGpu> gpus = FakeMachine::gpus(1);
  gpus[0].attributes[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] = 166'912;
  gpus[0].attributes[CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH] = 0;
  FakeMachine machine(gpus);
  const auto backend = make_cuda_backend({});
  EXPECT_EQ(backend->object_to_kernel(kernel_with(166'912, 1)), "");
  EXPECT_EQ(backend->object_to_kernel(kernel_with(166'913, 1)),
            "a block of AKernel needs 166913 bytes of block memory, and GPU 0 has 166912");
  EXPECT_EQ(backend->object_to_kernel(kernel_with(0, 2)),
            "AKernel runs in clusters of 2 blocks, and GPU 0 has no clusters");
}

}  // namespace
}  // namespace iridium::test
