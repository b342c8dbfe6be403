#include "backend/cuda/cublas.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/settings.h"
#include "iridium/errors.h"

namespace iridium {
namespace {

constexpr const char* known_names[] = {"libcublas.so.13", "libcublas.so.12"};

template <class Function>
void look_up(void* library, const std::string& path, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (function == nullptr)
    throw Error(Errc::unsupported, fmt::format("cuBLAS, opened as {}, has no {}", path, name));
}

Cublas look_up_all(void* library, const std::string& path) {
  Cublas calls = {};
  look_up(library, path, "cublasCreate_v2", calls.create);
  look_up(library, path, "cublasSetStream_v2", calls.set_stream);
  look_up(library, path, "cublasSetWorkspace_v2", calls.set_workspace);
  look_up(library, path, "cublasSetMathMode", calls.set_math_mode);
  look_up(library, path, "cublasGemmEx", calls.multiply);
  look_up(library, path, "cublasGetStatusString", calls.describe);
  return calls;
}

void check(const Cublas& calls, cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(Errc::system, fmt::format("cuBLAS: {}: {}", what, calls.describe(status)));
}

cudaDataType_t cublas_type(DataType type) {
  if (type == DataType::fp32) return CUDA_R_32F;
  return type == DataType::fp16 ? CUDA_R_16F : CUDA_R_16BF;
}

}  // namespace

Cublas open_cublas(const std::string& path) {
  if (!path.empty()) {
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
      throw Error(Errc::unsupported,
                  fmt::format("cuBLAS cannot be opened ({}): {}", variables::cublas, ::dlerror()));
    return look_up_all(library, path);
  }
  for (const char* name : known_names)
    if (void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL); library != nullptr)
      return look_up_all(library, name);
  throw Error(Errc::unsupported,
              fmt::format("cuBLAS is not installed where the loader looks: no {}; {} can name it",
                          fmt::join(known_names, ", no "), variables::cublas));
}

const Cublas& cublas() {
  static const Cublas calls =
      open_cublas(process_environment(variables::cublas).value_or(std::string()));
  return calls;
}

CublasPool::CublasPool(const Cublas& calls, std::function<void*(std::size_t bytes)> allocate)
    : calls_(calls), allocate_(std::move(allocate)) {}

std::shared_ptr<CublasLoan> CublasPool::lend(cudaStream_t stream) {
  return std::make_shared<CublasLoan>(*this, take(), stream);
}

CublasPool::Entry CublasPool::take() {
  {
    const std::lock_guard lock(mutex_);
    const auto is_idle = [](const Entry& entry) {
      return std::ranges::all_of(entry.works, [](const auto& work) { return work->reached(); });
    };
    if (const auto idle = std::ranges::find_if(entries_, is_idle); idle != entries_.end()) {
      Entry entry = std::move(*idle);
      entries_.erase(idle);
      entry.works.clear();
      return entry;
    }
  }
  return make();
}

CublasPool::Entry CublasPool::make() const {
  Entry entry;
  entry.workspace = allocate_(workspace_bytes);
  check(calls_, calls_.create(&entry.handle), "cannot make a handle");
  // Parts of K are added in fp32, too.
  check(calls_,
        calls_.set_math_mode(entry.handle, static_cast<cublasMath_t>(
                                               CUBLAS_DEFAULT_MATH |
                                               CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
        "cannot set the arithmetic");
  return entry;
}

void CublasPool::give_back(Entry entry) {
  const std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
}

CublasLoan::CublasLoan(CublasPool& pool, CublasPool::Entry entry, cudaStream_t stream)
    : pool_(pool), entry_(std::move(entry)) {
  const Cublas& calls = pool_.calls_;
  check(calls, calls.set_stream(entry_.handle, stream), "cannot set the stream");
  // Behind the stream, which brings cuBLAS's own workspace back.
  check(calls, calls.set_workspace(entry_.handle, entry_.workspace, CublasPool::workspace_bytes),
        "cannot set the workspace");
}

CublasLoan::~CublasLoan() {
  pool_.give_back(std::move(entry_));
}

void CublasLoan::keep_until(std::shared_ptr<const Marker> work) const {
  const std::lock_guard lock(mutex_);
  entry_.works.push_back(std::move(work));
}

void CublasLoan::multiply(const LibraryProduct& product) const {
  const float one = 1;
  const float zero = 0;
  const cudaDataType_t type = cublas_type(product.type);
  const auto integer = [](std::size_t extent) { return static_cast<int>(extent); };
  // cuBLAS's matrices lie column by column: to it ours are transposed, and D^T = B^T × A^T.
  check(pool_.calls_,
        pool_.calls_.multiply(
            entry_.handle, product.b_along_k ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N,
            integer(product.columns), integer(product.rows), integer(product.depth), &one,
            product.b, type, integer(product.b_pitch), product.a, type, integer(product.a_pitch),
            &zero, product.d, type, integer(product.d_pitch),
            product.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cannot multiply");
}

}  // namespace iridium
