// cuBLAS, opened on demand: nothing links against it.
#pragma once

#include <cublas_v2.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "iridium/stream.h"

namespace iridium {

/// Its calls.
struct Cublas {
  decltype(&cublasCreate_v2) create;
  decltype(&cublasSetStream_v2) set_stream;
  decltype(&cublasSetWorkspace_v2) set_workspace;
  decltype(&cublasSetMathMode) set_math_mode;
  /// cublasGemmEx, which the header overloads.
  cublasStatus_t (*multiply)(cublasHandle_t, cublasOperation_t of_a, cublasOperation_t of_b, int m,
                             int n, int k, const void* alpha, const void* a, cudaDataType a_type,
                             int a_pitch, const void* b, cudaDataType b_type, int b_pitch,
                             const void* beta, void* c, cudaDataType c_type, int c_pitch,
                             cublasComputeType_t, cublasGemmAlgo_t);
  decltype(&cublasGetStatusString) describe;
};

/// The library at `path`, or without one the first that the loader finds of libcublas.so.13 and
/// libcublas.so.12. Throws `unsupported` with the reason.
Cublas open_cublas(const std::string& path);

/// The one that IRIDIUM_CUBLAS names or the loader finds, opened by the first call. Throws as
/// `open_cublas` does, every time.
const Cublas& cublas();

/// A handle of cuBLAS and the memory that its kernels work in. Lent to one stream, and to the
/// graphs captured on it: the memory is used again when all of them are gone and their work is
/// done.
class CublasLoan;

/// Handles that are not lent. Neither they nor their memory are ever freed: that would wait for all
/// work on the GPU.
class CublasPool {
 public:
  /// `allocate` returns memory of a GPU, or throws.
  CublasPool(const Cublas& calls, std::function<void*(std::size_t bytes)> allocate);
  CublasPool(const CublasPool&) = delete;
  CublasPool& operator=(const CublasPool&) = delete;

  /// For this stream's products from now on. May allocate, and wait for work on the GPU. The pool
  /// outlives it.
  std::shared_ptr<CublasLoan> lend(cudaStream_t stream);

  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

 private:
  friend class CublasLoan;
  struct Entry {
    cublasHandle_t handle = nullptr;
    void* workspace = nullptr;
    std::vector<std::shared_ptr<const Marker>> works = {};  ///< that may use it still
  };
  /// One that no work uses; a new one where there is none.
  Entry take();
  Entry make() const;
  void give_back(Entry entry);

  const Cublas calls_;
  const std::function<void*(std::size_t bytes)> allocate_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

class CublasLoan final : public detail::Resource {
 public:
  CublasLoan(CublasPool& pool, CublasPool::Entry entry, cudaStream_t stream);
  ~CublasLoan() override;

  void keep_until(std::shared_ptr<const Marker> work) const override;
  /// Submits the product to the stream. Throws `system` when cuBLAS does not take it.
  void multiply(const LibraryProduct& product) const;

 private:
  CublasPool& pool_;
  mutable std::mutex mutex_;
  mutable CublasPool::Entry entry_;
};

}  // namespace iridium
