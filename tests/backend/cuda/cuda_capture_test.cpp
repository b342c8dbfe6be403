// What CUDA itself lets a capture do (docs/capture.md), and offenders that only CUDA can have.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "backend/cuda/gpu_test_base.h"
#include "probe/offenders.h"
#include "support/markdown_table.h"
#include "support/ranks.h"
#include "support/source_folder.h"

namespace iridium::test {
namespace {

constexpr std::size_t bytes = 64;

/// What the calls below need. Never freed: a test's process ends soon.
struct Scene {
  Scene() {
    require_success(cudaMalloc(&device, bytes));
    require_success(cudaMalloc(&target, bytes));
    require_success(cudaMallocHost(&pinned, bytes));
    for (cudaStream_t* made : {&stream, &other})
      require_success(cudaStreamCreateWithFlags(made, cudaStreamNonBlocking));
    for (cudaEvent_t* made : {&event, &reached})
      require_success(cudaEventCreateWithFlags(made, cudaEventDisableTiming));
    require_success(cudaEventRecord(reached, other));
    require_success(cudaDeviceSynchronize());
  }

  static void require_success(cudaError_t status) {
    require(status == cudaSuccess, cudaGetErrorName(status));
  }

  void* device = nullptr;
  void* target = nullptr;
  void* pinned = nullptr;
  char pageable[bytes] = {};
  cudaStream_t stream = nullptr;  ///< captures
  cudaStream_t other = nullptr;
  cudaEvent_t event = nullptr;    ///< for the capture
  cudaEvent_t reached = nullptr;  ///< recorded before it
};

cudaError_t in_another_thread(const std::function<cudaError_t()>& call) {
  cudaError_t status = cudaSuccess;
  std::thread([&] { status = call(); }).join();
  return status;
}

cudaError_t copy(cudaStream_t stream, void* to, const void* from) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}

cudaError_t allocate_and_free() {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes);
  return status == cudaSuccess ? cudaFree(memory) : status;
}

cudaError_t allocate_and_free(cudaStream_t stream) {
  void* memory = nullptr;
  const cudaError_t status = cudaMallocAsync(&memory, bytes, stream);
  return status == cudaSuccess ? cudaFreeAsync(memory, stream) : status;
}

struct Call {
  const char* name;
  std::function<cudaError_t(Scene&)> make;
};

const std::vector<Call>& calls() {
  static const std::vector<Call> all = {
      {"`cudaMemcpyAsync` between device memory",
       [](Scene& s) { return copy(s.stream, s.target, s.device); }},
      {"`cudaMemcpyAsync` from pinned memory",
       [](Scene& s) { return copy(s.stream, s.target, s.pinned); }},
      {"`cudaMemcpyAsync` from pageable memory",
       [](Scene& s) { return copy(s.stream, s.target, s.pageable); }},
      {"`cudaMemcpyAsync` to pageable memory",
       [](Scene& s) { return copy(s.stream, s.pageable, s.device); }},
      {"`cudaMemsetAsync`", [](Scene& s) { return cudaMemsetAsync(s.target, 0, bytes, s.stream); }},
      {"`cudaLaunchHostFunc`",
       [](Scene& s) { return cudaLaunchHostFunc(s.stream, [](void*) {}, nullptr); }},
      {"`cudaMallocAsync`, `cudaFreeAsync`", [](Scene& s) { return allocate_and_free(s.stream); }},
      {"`cudaEventRecord`", [](Scene& s) { return cudaEventRecord(s.event, s.stream); }},
      {"`cudaEventQuery` of an event it recorded",
       [](Scene& s) {
         static_cast<void>(cudaEventRecord(s.event, s.stream));
         return cudaEventQuery(s.event);
       }},
      {"`cudaEventQuery` of another event", [](Scene& s) { return cudaEventQuery(s.reached); }},
      {"`cudaEventSynchronize` of another event",
       [](Scene& s) { return cudaEventSynchronize(s.reached); }},
      {"`cudaStreamWaitEvent` for another event",
       [](Scene& s) { return cudaStreamWaitEvent(s.stream, s.reached, 0); }},
      {"`cudaStreamSynchronize`", [](Scene& s) { return cudaStreamSynchronize(s.stream); }},
      {"`cudaStreamQuery`", [](Scene& s) { return cudaStreamQuery(s.stream); }},
      {"`cudaStreamSynchronize` of another stream",
       [](Scene& s) { return cudaStreamSynchronize(s.other); }},
      {"`cudaStreamQuery` of another stream", [](Scene& s) { return cudaStreamQuery(s.other); }},
      {"`cudaMemcpyAsync` on another stream",
       [](Scene& s) { return copy(s.other, s.target, s.device); }},
      {"`cudaMallocAsync` on another stream", [](Scene& s) { return allocate_and_free(s.other); }},
      {"`cudaDeviceSynchronize`", [](Scene&) { return cudaDeviceSynchronize(); }},
      {"`cudaDeviceSynchronize`, by another thread",
       [](Scene&) { return in_another_thread([] { return cudaDeviceSynchronize(); }); }},
      {"`cudaMalloc`", [](Scene&) { return allocate_and_free(); }},
      {"`cudaMalloc`, by another thread",
       [](Scene&) { return in_another_thread([] { return allocate_and_free(); }); }},
      {"`cudaFree`", [](Scene&) { return cudaFree(nullptr); }},
      {"`cudaMallocHost`",
       [](Scene&) {
         void* memory = nullptr;
         return cudaMallocHost(&memory, bytes);
       }},
      {"`cudaMemcpy` from pageable memory",
       [](Scene& s) { return cudaMemcpy(s.target, s.pageable, bytes, cudaMemcpyDefault); }},
      {"`cudaMemset`", [](Scene& s) { return cudaMemset(s.target, 0, bytes); }},
      {"`cudaStreamCreate`",
       [](Scene&) {
         cudaStream_t made = nullptr;
         const cudaError_t status = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
         return status == cudaSuccess ? cudaStreamDestroy(made) : status;
       }},
      {"`cudaStreamBeginCapture`",
       [](Scene& s) { return cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal); }},
      {"`cudaStreamEndCapture`, by another thread",
       [](Scene& s) {
         return in_another_thread([&] {
           cudaGraph_t graph = nullptr;
           return cudaStreamEndCapture(s.stream, &graph);
         });
       }},
  };
  return all;
}

std::string describe(cudaStreamCaptureStatus status) {
  switch (status) {
    case cudaStreamCaptureStatusActive:
      return "goes on";
    case cudaStreamCaptureStatusInvalidated:
      return "is broken";
    default:
      return "has ended";
  }
}

/// What the call returns, and what becomes of the capture.
std::vector<std::string> observe(const Call& call) {
  Scene scene;
  Scene::require_success(cudaStreamBeginCapture(scene.stream, cudaStreamCaptureModeThreadLocal));
  const std::string outcome = cudaGetErrorName(call.make(scene));
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  Scene::require_success(cudaStreamIsCapturing(scene.stream, &status));
  cudaGraph_t graph = nullptr;
  static_cast<void>(cudaStreamEndCapture(scene.stream, &graph));
  static_cast<void>(cudaGetLastError());
  Scene::require_success(cudaMemsetAsync(scene.target, 0, bytes, scene.stream));
  Scene::require_success(cudaStreamSynchronize(scene.stream));
  return {outcome, describe(status)};
}

class CudaCaptureTable : public GpuTest {};

TEST_F(CudaCaptureTable, IsTrue) {
  const auto table = read_table(source_file("docs/capture.md"), "## CUDA's calls");
  for (const Call& call : calls()) {
    const std::vector<std::string> seen = observe(call);
    const auto row = table.find(call.name);
    if (row == table.end())
      ADD_FAILURE() << "lacks | " << call.name << " | " << seen[0] << " | " << seen[1] << " |";
    else
      EXPECT_EQ(row->second, seen) << call.name;
  }
  EXPECT_EQ(calls().size(), table.size()) << "the table has rows of calls that nobody tries";
}

class CudaProbe : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) context_.emplace(ContextOptions{.backend = BackendKind::cuda});
  }
  ProbeResult probe(CopyOperation& operation) {
    Stream stream = context_->make_stream();
    const ProbeResult result = iridium::probe(stream, target_of(operation));
    EXPECT_EQ(stream.capture_status(), CaptureStatus::none);
    stream.synchronize();
    return result;
  }

  std::optional<Context> context_;
};

/// Calls CUDA directly, and looks at no error.
class CallsCuda final : public CopyOperation {
 public:
  CallsCuda(Context& context, std::function<void()> call)
      : CopyOperation(context), call_(std::move(call)) {}
  void launch(StreamRef& stream) override {
    call_();
    CopyOperation::launch(stream);
  }

 private:
  std::function<void()> call_;
};

void expect_broken(const ProbeResult& result, const std::string& cause) {
  EXPECT_EQ(name(result.verdict), name(Verdict::not_capturable));
  EXPECT_EQ(result.step, "capture");
  EXPECT_TRUE(result.broke_capture);
  for (const std::string& part : {std::string("cudaErrorStreamCaptureInvalidated"), cause})
    EXPECT_NE(result.reason.find(part), std::string::npos) << result.reason;
}

TEST_F(CudaProbe, FindsAnAllocationOfCudas) {
  CallsCuda operation(*context_, [] { static_cast<void>(allocate_and_free()); });
  expect_broken(probe(operation), "cudaErrorStreamCaptureUnsupported");
}

TEST_F(CudaProbe, FindsAWaitOfCudas) {
  CallsCuda operation(*context_, [] { static_cast<void>(cudaDeviceSynchronize()); });
  expect_broken(probe(operation), "cudaErrorStreamCaptureUnsupported");
}

TEST_F(CudaProbe, FindsWorkThatWentToAnotherStream) {
  class UsesTheDefaultStream final : public CopyOperation {
   public:
    using CopyOperation::CopyOperation;
    void launch(StreamRef&) override {
      static_cast<void>(cudaMemcpy(output.data(), input.data(), input.bytes(), cudaMemcpyDefault));
    }
  };
  UsesTheDefaultStream operation(*context_);
  const ProbeResult result = probe(operation);
  EXPECT_EQ(name(result.verdict), name(Verdict::wrong_result));
  EXPECT_EQ(result.step, "replay 1");
  EXPECT_EQ(result.reason.find("element 0 is 4294967295, not "), 0u) << result.reason;
}

/// A capture in CUDA's strictest mode, as torch begins them, on a stream that is not Iridium's.
TEST_F(CudaProbe, LeavesAForeignGlobalCaptureAlone) {
  cudaStream_t foreign = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&foreign, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(foreign, cudaStreamCaptureModeGlobal), cudaSuccess);
  CopyOperation operation(*context_);
  EXPECT_EQ(name(probe(operation).verdict), name(Verdict::capturable));
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(foreign, &graph), cudaSuccess);
}

}  // namespace
}  // namespace iridium::test
