#include "backend/cuda/cuda_stream.h"

#include <fmt/format.h>

#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/cuda_error.h"
#include "backend/cuda/cuda_scope.h"
#include "base/log.h"
#include "iridium/errors.h"

namespace iridium {
namespace {

/// Where a host function leaves its exception for the stream's next call.
class Failure {
 public:
  void set(std::string reason) {
    const std::lock_guard lock(mutex_);
    if (!reason_) reason_ = std::move(reason);
  }
  std::optional<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(reason_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::optional<std::string> reason_;
};

struct HostCall {
  std::function<void()> function;
  std::shared_ptr<Failure> failure;

  void run() const {
    try {
      function();
    } catch (const std::exception& error) {
      failure->set(error.what());
    } catch (...) {
      failure->set("an exception of unknown type");
    }
  }
};

void run_and_delete(void* call) {
  const std::unique_ptr<HostCall> owned(static_cast<HostCall*>(call));
  owned->run();
}
void run_again(void* call) {
  static_cast<const HostCall*>(call)->run();
}
void delete_call(void* call) {
  delete static_cast<HostCall*>(call);
}

struct CudaGraph final : detail::GraphImpl {
  explicit CudaGraph(int on_device) : device(on_device) {}
  ~CudaGraph() override {
    const CudaScope scope(device);
    if (executable != nullptr) static_cast<void>(cudaGraphExecDestroy(executable));
    if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  std::size_t node_count() const override {
    std::size_t count = 0;
    check_cuda(cudaGraphGetNodes(graph, nullptr, &count), "cannot count a graph's nodes");
    return count;
  }

  int device;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  std::vector<std::shared_ptr<detail::Allocation>> retained;
};

cudaStreamCaptureStatus status_of(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream, &status), "cannot ask whether a stream is capturing");
  return status;
}

/// An event behind the stream's work. A stream that is capturing cannot take one; then it is
/// recorded when the capture is over, and until then the work counts as not done.
class CudaMarker final : public Marker {
 public:
  CudaMarker(int device, cudaStream_t stream) : device_(device), stream_(stream) { try_record(); }
  ~CudaMarker() override {
    const CudaScope scope(device_);
    if (event_ != nullptr) static_cast<void>(cudaEventDestroy(event_));
  }
  CudaMarker(const CudaMarker&) = delete;
  CudaMarker& operator=(const CudaMarker&) = delete;

  bool reached() const override {
    const CudaScope scope(device_);
    if (event_ == nullptr && !try_record()) return false;
    const cudaError_t status = cudaEventQuery(event_);
    static_cast<void>(cudaGetLastError());
    // Work that failed is over too.
    return status != cudaErrorNotReady;
  }

 private:
  bool try_record() const {
    const CudaScope scope(device_);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream_, &status) == cudaSuccess &&
        status != cudaStreamCaptureStatusNone)
      return false;
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cannot make an event");
    check_cuda(cudaEventRecord(event_, stream_), "cannot record an event");
    return true;
  }

  int device_;
  cudaStream_t stream_;
  mutable cudaEvent_t event_ = nullptr;
};

class CudaStream final : public detail::StreamImpl {
 public:
  CudaStream(int device, cudaStream_t stream, bool owned)
      : device_(device), stream_(stream), owned_(owned) {}

  ~CudaStream() override {
    const CudaScope scope(device_);
    try {
      const std::shared_ptr<const Marker> end = mark();
      for (const LastWork& tell : on_last_work_) tell(end);
    } catch (const std::exception& error) {
      log(LogLevel::debug, -1, "the end of a stream's work is unknown: {}", error.what());
    }
    if (owned_) static_cast<void>(cudaStreamDestroy(stream_));
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  void copy(void* to, const void* from, std::size_t bytes) override {
    const CudaScope scope(device_);
    throw_failure();
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "copy");
  }

  void fill(void* to, unsigned char value, std::size_t bytes) override {
    const CudaScope scope(device_);
    throw_failure();
    check_cuda(cudaMemsetAsync(to, value, bytes, stream_), "fill");
  }

  void call(std::function<void()> function) override {
    const CudaScope scope(device_);
    throw_failure();
    auto call = std::make_unique<HostCall>(HostCall{std::move(function), failure_});
    if (status_of(stream_) == cudaStreamCaptureStatusNone) {
      HostCall* queued = call.release();
      const cudaError_t status = cudaLaunchHostFunc(stream_, run_and_delete, queued);
      if (status != cudaSuccess) delete queued;
      check_cuda(status, "call");
    } else {
      HostCall* recorded = give_to_graph(std::move(call));
      check_cuda(cudaLaunchHostFunc(stream_, run_again, recorded), "call");
    }
  }

  void retain(std::shared_ptr<detail::Allocation> allocation) override {
    if (capture_status() == CaptureStatus::none) {
      call([held = std::move(allocation)] {});
      return;
    }
    const std::lock_guard lock(mutex_);
    if (!recording_)
      throw Error(Errc::unsupported,
                  "retain_on: this capture was not begun by Iridium; keep the array alive as long "
                  "as the graph");
    recording_->retained.push_back(std::move(allocation));
  }

  void synchronize() override {
    const CudaScope scope(device_);
    refuse_capture("synchronize");
    const cudaError_t status = cudaStreamSynchronize(stream_);
    throw_failure();
    check_work(status);
  }

  bool idle() override {
    const CudaScope scope(device_);
    refuse_capture("idle");
    throw_failure();
    const cudaError_t status = cudaStreamQuery(stream_);
    if (status == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());
      return false;
    }
    check_work(status);
    return true;
  }

  void begin_capture() override {
    const CudaScope scope(device_);
    throw_failure();
    const std::lock_guard lock(mutex_);
    if (status_of(stream_) != cudaStreamCaptureStatusNone)
      throw Error(Errc::invalid_argument, "begin_capture: this stream is capturing already");
    check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "begin_capture");
    recording_ = std::make_shared<CudaGraph>(device_);
  }

  std::shared_ptr<const detail::GraphImpl> end_capture() override {
    const CudaScope scope(device_);
    const std::lock_guard lock(mutex_);
    if (!recording_)
      throw Error(Errc::invalid_argument, "end_capture: this stream is not capturing");
    auto graph = std::exchange(recording_, nullptr);
    check_cuda(cudaStreamEndCapture(stream_, &graph->graph), "end_capture: the capture was broken");
    check_cuda(cudaGraphInstantiate(&graph->executable, graph->graph, 0),
               "end_capture: cannot instantiate the graph");
    return graph;
  }

  CaptureStatus capture_status() const override {
    const CudaScope scope(device_);
    switch (status_of(stream_)) {
      case cudaStreamCaptureStatusActive:
        return CaptureStatus::active;
      case cudaStreamCaptureStatusInvalidated:
        return CaptureStatus::invalidated;
      default:
        return CaptureStatus::none;
    }
  }

  void launch(std::shared_ptr<const detail::GraphImpl> graph) override {
    const CudaScope scope(device_);
    throw_failure();
    const auto cuda_graph = std::dynamic_pointer_cast<const CudaGraph>(graph);
    if (!cuda_graph)
      throw Error(Errc::invalid_argument, "launch: the graph was captured on another backend");
    if (status_of(stream_) == cudaStreamCaptureStatusNone)
      check_cuda(cudaGraphLaunch(cuda_graph->executable, stream_), "launch of a graph");
    else
      record_child(*cuda_graph);
  }

  void* native_handle() const override { return stream_; }

  void close() noexcept override {
    const std::lock_guard lock(mutex_);
    if (!recording_) return;
    const CudaScope scope(device_);
    cudaGraph_t abandoned = nullptr;
    static_cast<void>(cudaStreamEndCapture(stream_, &abandoned));
    if (abandoned != nullptr) static_cast<void>(cudaGraphDestroy(abandoned));
    recording_ = nullptr;
  }

  void add_last_work(LastWork on_last_work) {
    const std::lock_guard lock(mutex_);
    if (on_last_work) on_last_work_.push_back(std::move(on_last_work));
  }

  std::unique_ptr<Marker> mark() override { return std::make_unique<CudaMarker>(device_, stream_); }

 private:
  struct CaptureInfo {
    cudaGraph_t graph = nullptr;
    const cudaGraphNode_t* dependencies = nullptr;
    std::size_t count = 0;
  };

  CaptureInfo capture_info() const {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    CaptureInfo info;
    check_cuda(cudaStreamGetCaptureInfo(stream_, &status, nullptr, &info.graph, &info.dependencies,
                                        nullptr, &info.count),
               "cannot look into the capture");
    if (status != cudaStreamCaptureStatusActive)
      throw Error(Errc::capture_unsupported, "the capture was broken");
    return info;
  }

  /// The graph being captured, ours or not, owns the call from here on.
  HostCall* give_to_graph(std::unique_ptr<HostCall> call) const {
    const CaptureInfo info = capture_info();
    cudaUserObject_t object = nullptr;
    check_cuda(
        cudaUserObjectCreate(&object, call.get(), delete_call, 1, cudaUserObjectNoDestructorSync),
        "cannot keep a function for a graph");
    HostCall* recorded = call.release();
    check_cuda(cudaGraphRetainUserObject(info.graph, object, 1, cudaGraphUserObjectMove),
               "cannot keep a function for a graph");
    return recorded;
  }

  void record_child(const CudaGraph& child) {
    const CaptureInfo info = capture_info();
    cudaGraphNode_t node = nullptr;
    check_cuda(
        cudaGraphAddChildGraphNode(&node, info.graph, info.dependencies, info.count, child.graph),
        "cannot record the launch of a graph");
    check_cuda(cudaStreamUpdateCaptureDependencies(stream_, &node, nullptr, 1,
                                                   cudaStreamSetCaptureDependencies),
               "cannot record the launch of a graph");
    const std::lock_guard lock(mutex_);
    if (recording_)
      recording_->retained.insert(recording_->retained.end(), child.retained.begin(),
                                  child.retained.end());
  }

  void throw_failure() {
    if (const auto reason = failure_->take())
      throw Error(Errc::stream_failed,
                  fmt::format("work queued on the stream failed: {}", *reason));
  }

  void check_work(cudaError_t status) const {
    if (status == cudaSuccess) return;
    static_cast<void>(cudaGetLastError());
    throw Error(Errc::stream_failed,
                fmt::format("work queued on the stream failed: {} ({})", cudaGetErrorString(status),
                            cudaGetErrorName(status)));
  }

  void refuse_capture(const char* call) const {
    if (status_of(stream_) != cudaStreamCaptureStatusNone)
      throw Error(Errc::capture_unsupported,
                  fmt::format("{} cannot be part of a capture; the capture goes on", call));
  }

  int device_;
  cudaStream_t stream_;
  bool owned_;
  std::shared_ptr<Failure> failure_ = std::make_shared<Failure>();
  std::mutex mutex_;
  std::vector<LastWork> on_last_work_;
  std::shared_ptr<CudaGraph> recording_;  ///< the capture begun here
};

struct LiveStreams {
  std::mutex mutex;
  std::map<std::pair<int, cudaStream_t>, std::weak_ptr<CudaStream>> by_handle;
};

/// Never destroyed: streams may go while the process exits.
LiveStreams& live_streams() {
  static auto& streams = *new LiveStreams;
  return streams;
}

/// One object per stream of CUDA, whoever asks: a capture begun through one name can be ended
/// through another.
std::shared_ptr<CudaStream> open_stream(int device, cudaStream_t stream, bool owned,
                                        LastWork on_last_work) {
  LiveStreams& streams = live_streams();
  const std::lock_guard lock(streams.mutex);
  std::erase_if(streams.by_handle, [](const auto& entry) { return entry.second.expired(); });
  auto& slot = streams.by_handle[{device, stream}];
  std::shared_ptr<CudaStream> known = slot.lock();
  if (!known) slot = known = std::make_shared<CudaStream>(device, stream, owned);
  known->add_last_work(std::move(on_last_work));
  return known;
}

}  // namespace

std::shared_ptr<detail::StreamImpl> make_cuda_stream(int device, LastWork on_last_work) {
  const CudaScope scope(device);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cannot make a stream");
  return open_stream(device, stream, true, std::move(on_last_work));
}

std::shared_ptr<detail::StreamImpl> borrow_cuda_stream(int device, cudaStream_t stream,
                                                       LastWork on_last_work) {
  const CudaScope scope(device);
  int owner = 0;
  check_cuda(cudaStreamGetDevice(stream, &owner),
             fmt::format("{} is no stream of CUDA", fmt::ptr(stream)));
  if (owner != device)
    throw Error(
        Errc::invalid_argument,
        fmt::format("the borrowed stream belongs to GPU {}; this rank uses GPU {}", owner, device));
  return open_stream(device, stream, false, std::move(on_last_work));
}

}  // namespace iridium
