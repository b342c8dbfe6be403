#include "backend/cuda/fake_cublas.h"

#include "iridium/device/number.h"

using iridium::bf16;
using iridium::fp16;

namespace {

float read(const void* data, cudaDataType type, std::size_t at) {
  if (type == CUDA_R_16F) return static_cast<float>(static_cast<const fp16*>(data)[at]);
  if (type == CUDA_R_16BF) return static_cast<float>(static_cast<const bf16*>(data)[at]);
  return static_cast<const float*>(data)[at];
}

void write(void* data, cudaDataType type, std::size_t at, float value) {
  if (type == CUDA_R_16F)
    static_cast<fp16*>(data)[at] = fp16(value);
  else if (type == CUDA_R_16BF)
    static_cast<bf16*>(data)[at] = bf16(value);
  else
    static_cast<float*>(data)[at] = value;
}

/// An element of op(X), where X lies column by column.
float element(const void* x, cudaDataType type, int pitch, cublasOperation_t operation, int row,
              int column) {
  const bool is_turned = operation != CUBLAS_OP_N;
  const auto down = static_cast<std::size_t>(is_turned ? column : row);
  const auto across = static_cast<std::size_t>(is_turned ? row : column);
  return read(x, type, across * static_cast<std::size_t>(pitch) + down);
}

}  // namespace

extern "C" {

iridium::test::FakeCublas* fake_cublas() {
  static iridium::test::FakeCublas state;
  return &state;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  fake_cublas()->calls.emplace_back("Create");
  ++fake_cublas()->handles;
  *handle = reinterpret_cast<cublasHandle_t>(fake_cublas());
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t stream) {
  fake_cublas()->calls.emplace_back("SetStream");
  fake_cublas()->stream = stream;
  fake_cublas()->workspace = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void* workspace, std::size_t bytes) {
  fake_cublas()->calls.emplace_back("SetWorkspace");
  fake_cublas()->workspace = workspace;
  fake_cublas()->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t mode) {
  fake_cublas()->calls.emplace_back("SetMathMode");
  fake_cublas()->math_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t of_a, cublasOperation_t of_b, int m,
                            int n, int k, const void* alpha, const void* a, cudaDataType a_type,
                            int a_pitch, const void* b, cudaDataType b_type, int b_pitch,
                            const void* beta, void* c, cudaDataType c_type, int c_pitch,
                            cublasComputeType_t compute, cublasGemmAlgo_t) {
  fake_cublas()->calls.emplace_back("GemmEx");
  fake_cublas()->compute = compute;
  if (fake_cublas()->answer != CUBLAS_STATUS_SUCCESS) return fake_cublas()->answer;
  // As the real one checks them.
  if (a_pitch < (of_a == CUBLAS_OP_N ? m : k) || b_pitch < (of_b == CUBLAS_OP_N ? k : n) ||
      c_pitch < m)
    return CUBLAS_STATUS_INVALID_VALUE;
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; ++column) {
      float sum = 0;
      for (int i = 0; i < k; ++i)
        sum += element(a, a_type, a_pitch, of_a, row, i) *
               element(b, b_type, b_pitch, of_b, i, column);
      const auto at = static_cast<std::size_t>(column) * static_cast<std::size_t>(c_pitch) +
                      static_cast<std::size_t>(row);
      // Nothing is read that the factor takes away.
      const float factor = *static_cast<const float*>(beta);
      const float before = factor == 0 ? 0 : factor * read(c, c_type, at);
      write(c, c_type, at, *static_cast<const float*>(alpha) * sum + before);
    }
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "fake: not supported" : "fake: other";
}

}  // extern "C"
