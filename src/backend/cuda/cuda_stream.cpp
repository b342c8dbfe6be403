#include "backend/cuda/cuda_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cuda/cublas.h"
#include "backend/cuda/cuda_error.h"
#include "backend/cuda/cuda_graph.h"
#include "backend/cuda/cuda_scope.h"
#include "backend/cuda/driver.h"
#include "backend/cuda/gpu.h"
#include "backend/cuda/tensor_map.h"
#include "base/log.h"
#include "iridium/errors.h"

namespace iridium {
namespace {

/// CUDA's event, behind the stream's work.
class RecordedEvent {
 public:
  RecordedEvent(int device, cudaStream_t stream) : device_(device) {
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cannot make an event");
    const cudaError_t status = cudaEventRecord(event_, stream);
    if (status != cudaSuccess) static_cast<void>(cudaEventDestroy(event_));
    check_cuda(status, "cannot record an event");
  }
  ~RecordedEvent() {
    const CudaScope scope(device_);
    static_cast<void>(cudaEventDestroy(event_));
  }
  RecordedEvent(const RecordedEvent&) = delete;
  RecordedEvent& operator=(const RecordedEvent&) = delete;

  cudaEvent_t get() const { return event_; }
  bool reached() const {
    const CudaScope scope(device_);
    // Work that failed is over too.
    return driver().event_query(event_) != CUDA_ERROR_NOT_READY;
  }

 private:
  int device_;
  cudaEvent_t event_ = nullptr;
};

class CudaMarker final : public Marker {
 public:
  CudaMarker(int device, cudaStream_t stream) : event_(device, stream) {}
  bool reached() const override { return event_.reached(); }

 private:
  RecordedEvent event_;
};

struct CudaEvent final : detail::EventImpl {
  CudaEvent(int device, cudaStream_t stream) : event(device, stream) {}

  RecordedEvent event;
  unsigned long long capture = 0;        ///< the number of the one it was recorded in; 0: none
  std::shared_ptr<Recording> recording;  ///< the same, if Iridium has begun it
};

/// On a stream without work.
class ReachedMarker final : public Marker {
 public:
  bool reached() const override { return true; }
};

/// Of work whose end cannot be told.
class UnknownMarker final : public Marker {
 public:
  bool reached() const override { return false; }
};

/// Never destroyed: streams may go while the process exits.
CublasPool& cublas_pool(int device) {
  static std::mutex mutex;
  static auto& pools = *new std::map<int, CublasPool>;
  const std::lock_guard lock(mutex);
  const auto allocate = [](std::size_t bytes) {
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, bytes), "cannot allocate cuBLAS's workspace");
    return memory;
  };
  return pools.try_emplace(device, cublas(), allocate).first->second;
}

class CudaStream final : public detail::StreamImpl {
 public:
  CudaStream(int device, cudaStream_t stream, bool owned)
      : device_(device), stream_(stream), owned_(owned) {}

  ~CudaStream() override {
    const CudaScope scope(device_);
    std::shared_ptr<const Marker> end;
    try {
      // What it holds may be of contexts that do not know this stream.
      for (const Held& held : held_) held.resource->keep_until(held.work);
      // While a foreign capture runs on it, the end of its earlier work cannot be told.
      end = mark();
      if (end)
        for (const Launched& known : launched_) known.graph->keep_until(end);
    } catch (const std::exception& error) {
      log(LogLevel::debug, -1, "the end of a stream's work is unknown: {}", error.what());
    }
    if (cublas_) cublas_->keep_until(end ? end : std::make_shared<const UnknownMarker>());
    // Before what this stream holds goes: freeing it waits for streams that are about to tell.
    tell_end(end);
    if (owned_) static_cast<void>(cudaStreamDestroy(stream_));
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  std::string place() const override { return cuda_stream_place(device_); }

  Processors processors() const override {
    const std::lock_guard lock(processors_mutex_);
    if (!processors_) processors_ = ask_for_processors();
    return *processors_;
  }

  TensorMap make_tensor_map(const TensorBox& box) const override { return encode_tensor_map(box); }

  std::string object_to_library() const override {
    try {
      static_cast<void>(cublas());
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  }

  void multiply(const LibraryProduct& product) override {
    const Call call(*this);
    if (!cublas_) {
      if (is_capturing())
        throw Error(Errc::capture_unsupported,
                    "a stream's first product by cuBLAS makes its handle and its workspace, which "
                    "cannot be part of a capture: call it once before; the capture goes on");
      cublas_ = cublas_pool(device_).lend(stream_);
    }
    if (const auto recording = this->recording()) recording->retain(cublas_);
    cublas_->multiply(product);
  }

  void copy(void* to, const void* from, std::size_t bytes) override {
    const Call call(*this);
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "copy");
  }

  void fill(void* to, unsigned char value, std::size_t bytes) override {
    const Call call(*this);
    check_cuda(cudaMemsetAsync(to, value, bytes, stream_), "fill");
  }

  void call(std::function<void()> function) override {
    const Call submitting(*this);
    auto call = std::make_unique<HostCall>(HostCall{std::move(function), failure_});
    if (is_capturing()) {
      HostCall* recorded = give_to_graph(std::move(call));
      check_cuda(cudaLaunchHostFunc(stream_, HostCall::run, recorded), "call");
    } else {
      HostCall* queued = call.release();
      const cudaError_t status = cudaLaunchHostFunc(stream_, HostCall::run_and_delete, queued);
      if (status != cudaSuccess) delete queued;
      check_cuda(status, "call");
    }
  }

  void launch_kernel(const detail::KernelEntry& entry, const void* kernel, int blocks) override {
    require_cuda_code(entry);
    const Call call(*this);
    const int status = entry.launch_on_cuda(kernel, blocks, stream_);
    check_cuda(static_cast<cudaError_t>(status), fmt::format("launch of {}", entry.name));
  }

  std::shared_ptr<const detail::EventImpl> record() override {
    const Call call(*this);
    auto event = std::make_shared<CudaEvent>(device_, stream_);
    event->capture = capture_number();
    event->recording = recording();
    return event;
  }

  void wait(std::shared_ptr<const detail::EventImpl> event) override {
    const Call call(*this);
    const auto cuda_event = std::dynamic_pointer_cast<const CudaEvent>(event);
    if (!cuda_event)
      throw Error(Errc::invalid_argument, "wait: the event was recorded on another backend");
    const unsigned long long capture = capture_number();
    if (capture != 0 && capture != cuda_event->capture)
      throw Error(Errc::capture_unsupported,
                  "wait: the event was not recorded in this capture; the capture goes on");
    if (cuda_event->recording && cuda_event->recording->is_over())
      throw Error(Errc::invalid_argument,
                  "wait: the event was recorded in a capture that has ended");
    check_cuda(cudaStreamWaitEvent(stream_, cuda_event->event.get(), 0), "wait");
    recording_ = cuda_event->recording ? cuda_event->recording : recording();
  }

  void retain_in_capture(std::shared_ptr<const detail::Resource> resource) override {
    const std::lock_guard lock(mutex_);
    if (recording_) recording_->retain(std::move(resource));
  }

  void retain(std::shared_ptr<const detail::Resource> resource) override {
    const Call call(*this);
    if (!is_capturing()) {
      held_.push_back({std::move(resource), std::make_unique<CudaMarker>(device_, stream_)});
      return;
    }
    if (!recording())
      throw Error(Errc::unsupported,
                  "retain_on: this capture was not begun by Iridium; keep the array alive as long "
                  "as the graph");
    recording_->retain(std::move(resource));
  }

  void synchronize() override {
    std::vector<Launched> done;  // outlives the lock: dropping graphs frees arrays
    std::size_t launches = 0;
    {
      const Call call(*this);
      refuse_capture("synchronize");
      launches = launches_;
    }
    const CudaScope scope(device_);
    const cudaError_t status = cudaStreamSynchronize(stream_);
    const Call call(*this);
    check_work(status);
    if (launches == launches_) done.swap(launched_);
  }

  bool idle() override {
    std::vector<Launched> done;  // outlives the lock: dropping graphs frees arrays
    const Call call(*this);
    refuse_capture("idle");
    const CUresult status = driver().stream_query(stream_);
    if (status == CUDA_ERROR_NOT_READY) return false;
    check_work(runtime_error(status));
    done.swap(launched_);
    return true;
  }

  void begin_capture() override {
    const Call call(*this);
    if (is_capturing())
      throw Error(Errc::invalid_argument, "begin_capture: this stream is capturing already");
    check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "begin_capture");
    recording_ = std::make_shared<Recording>(device_);
    recorder_ = std::this_thread::get_id();
    error_before_ = cudaPeekAtLastError();
    cause_ = cudaSuccess;
  }

  std::shared_ptr<const detail::GraphImpl> end_capture() override {
    std::shared_ptr<CudaGraph> graph;  // outlives the lock: dropping it frees arrays
    const CudaScope scope(device_);
    const std::lock_guard lock(mutex_);
    if (!recording())
      throw Error(Errc::invalid_argument, "end_capture: this stream is not capturing");
    if (!recorder_)
      throw Error(Errc::invalid_argument,
                  "end_capture: the capture was begun on another stream, which must end it");
    // CUDA would refuse it too, and drop the capture.
    if (recorder_ != std::this_thread::get_id())
      throw Error(Errc::invalid_argument,
                  "end_capture: the capture was begun by another thread, which must end it");
    note_cause();
    graph = take_recording();
    const std::string cause =
        cause_ == cudaSuccess ? "" : fmt::format(" by {}", cudaGetErrorName(cause_));
    const cudaError_t status = cudaStreamEndCapture(stream_, &graph->graph);
    if (status == cudaErrorStreamCaptureUnjoined) {
      static_cast<void>(cudaGetLastError());
      throw Error(Errc::invalid_argument,
                  "end_capture: another stream has recorded work in this capture, which this one "
                  "has not waited for; the capture is lost");
    }
    check_cuda(status, fmt::format("end_capture: the capture was broken{}", cause));
    check_cuda(cudaGraphInstantiate(&graph->executable, graph->graph, 0),
               "end_capture: cannot instantiate the graph");
    return std::make_shared<CudaGraphHandle>(std::move(graph));
  }

  CaptureStatus capture_status() const override {
    const CudaScope scope(device_);
    switch (status_of_capture()) {
      case cudaStreamCaptureStatusNone:
        return CaptureStatus::none;
      case cudaStreamCaptureStatusInvalidated:
        return CaptureStatus::invalidated;
      default:
        return CaptureStatus::active;
    }
  }

  void launch(std::shared_ptr<const detail::GraphImpl> graph) override {
    const Call call(*this);
    const auto handle = std::dynamic_pointer_cast<const CudaGraphHandle>(graph);
    if (!handle)
      throw Error(Errc::invalid_argument, "launch: the graph was captured on another backend");
    const CudaGraph& cuda_graph = *handle->graph;
    if (cuda_graph.device != device_)
      throw Error(Errc::invalid_argument,
                  fmt::format("launch: the graph was captured on {}, this stream is on {}",
                              cuda_stream_place(cuda_graph.device), place()));
    if (is_capturing()) {
      record_child(cuda_graph);
      return;
    }
    check_cuda(cudaGraphLaunch(cuda_graph.executable, stream_), "launch of a graph");
    for (const auto& failure : cuda_graph.all_failures()) watch(failure);
    keep_launched(handle);
  }

  void* native_handle() const override { return stream_; }

  void close() noexcept override {
    std::shared_ptr<CudaGraph> abandoned;  // outlives the lock: dropping it frees arrays
    const CudaScope scope(device_);
    const std::lock_guard lock(mutex_);
    if (!recorder_) return;
    abandoned = take_recording();
    static_cast<void>(cudaStreamEndCapture(stream_, &abandoned->graph));
    static_cast<void>(cudaGetLastError());
  }

  std::unique_ptr<Marker> mark() override {
    const CudaScope scope(device_);
    const std::lock_guard lock(mutex_);
    return try_mark();
  }

 private:
  /// What work queued on this stream uses.
  struct Held {
    std::shared_ptr<const detail::Resource> resource;
    std::shared_ptr<Marker> work;
  };

  /// A graph that was launched here, and whether anybody can launch it again.
  struct Launched {
    std::weak_ptr<const CudaGraphHandle> handle;
    std::shared_ptr<const CudaGraph> graph;
  };

  /// Around every call: its turn on the stream, failures of earlier work, arrays that may go.
  class Call {
   public:
    explicit Call(CudaStream& stream) : scope_(stream.device_), lock_(stream.mutex_) {
      stream.throw_failure();
      stream.note_cause();
      stream.hold_dropped_graphs();
      auto& held = stream.held_;
      for (auto entry = held.begin(); entry != held.end();) {
        const bool done = entry->work->reached();
        if (done) released_.push_back(std::move(entry->resource));
        entry = done ? held.erase(entry) : entry + 1;
      }
    }

   private:
    CudaScope scope_;
    std::vector<std::shared_ptr<const detail::Resource>> released_;  ///< freed after the lock
    std::lock_guard<std::mutex> lock_;
  };

  /// What breaks a capture leaves its error behind, unless the caller takes it.
  void note_cause() {
    if (!recorder_ || cause_ != cudaSuccess) return;
    const cudaError_t last = cudaPeekAtLastError();
    if (last != error_before_) cause_ = last;
  }

  struct CaptureInfo {
    cudaGraph_t graph = nullptr;
    const cudaGraphNode_t* dependencies = nullptr;
    std::size_t count = 0;
  };

  cudaStreamCaptureStatus status_of_capture() const {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t error = cudaStreamIsCapturing(stream_, &status);
    if (error == cudaErrorStreamCaptureImplicit) {
      // The default stream waits for a stream that is capturing: it can take no work either.
      static_cast<void>(cudaGetLastError());
      return cudaStreamCaptureStatusActive;
    }
    check_cuda(error, "cannot ask whether a stream is capturing");
    return status;
  }

  bool is_capturing() const { return status_of_capture() != cudaStreamCaptureStatusNone; }

  Processors ask_for_processors() const {
    Gpu gpu = {.device = device_, .handle = 0, .uuid = {}};
    check_cuda(driver().device_get(&gpu.handle, device_),
               fmt::format("cannot look at {}", place()));
    device_name_ = gpu_name(gpu);
    return {.count = attribute(gpu, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            .capability = attribute(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                          attribute(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
            .backend = BackendKind::cuda,
            .device = device_name_};
  }

  /// Which one it is in; 0: none.
  unsigned long long capture_number() const {
    if (!is_capturing()) return 0;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long number = 0;
    check_cuda(
        cudaStreamGetCaptureInfo(stream_, &status, &number, nullptr, nullptr, nullptr, nullptr),
        "cannot look into the capture");
    return number;
  }

  /// The capture that this stream is in, if Iridium has begun it. One that it has joined ends
  /// without it.
  std::shared_ptr<Recording> recording() const {
    return recording_ && !recording_->is_over() ? recording_ : nullptr;
  }

  /// Of the capture that was begun here.
  std::shared_ptr<CudaGraph> take_recording() {
    recorder_.reset();
    return std::exchange(recording_, nullptr)->end();
  }

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
    if (const auto recording = this->recording()) call->failure = recording->failure();
    const CaptureInfo info = capture_info();
    cudaUserObject_t object = nullptr;
    check_cuda(cudaUserObjectCreate(&object, call.get(), HostCall::destroy, 1,
                                    cudaUserObjectNoDestructorSync),
               "cannot keep a function for a graph");
    HostCall* recorded = call.release();
    check_cuda(cudaGraphRetainUserObject(info.graph, object, 1, cudaGraphUserObjectMove),
               "cannot keep a function for a graph");
    return recorded;
  }

  void record_child(const CudaGraph& child) {
    const auto recording = this->recording();
    if (!recording && !child.retained.empty())
      throw Error(Errc::unsupported,
                  "launch: the graph keeps arrays alive, and a capture that was not begun by "
                  "Iridium cannot");
    const CaptureInfo info = capture_info();
    cudaGraphNode_t node = nullptr;
    check_cuda(
        cudaGraphAddChildGraphNode(&node, info.graph, info.dependencies, info.count, child.graph),
        "cannot record the launch of a graph");
    check_cuda(cudaStreamUpdateCaptureDependencies(stream_, &node, nullptr, 1,
                                                   cudaStreamSetCaptureDependencies),
               "cannot record the launch of a graph");
    if (recording) recording->add_child(child);
  }

  std::unique_ptr<Marker> try_mark() {
    if (is_capturing()) return nullptr;
    // The GPU gets to an event a while after it was recorded, also when there is nothing before it:
    // a rank that ends behind `synchronize` would seem to end before its work.
    if (driver().stream_query(stream_) == CUDA_SUCCESS) return std::make_unique<ReachedMarker>();
    return std::make_unique<CudaMarker>(device_, stream_);
  }

  void keep_launched(const std::shared_ptr<const CudaGraphHandle>& handle) {
    const auto is_this = [&](const Launched& known) { return known.graph == handle->graph; };
    if (std::ranges::none_of(launched_, is_this)) launched_.push_back({handle, handle->graph});
    ++launches_;
  }

  /// Graphs that nobody can launch any more stay until what was launched is done. Marked only then:
  /// a launch costs nothing for it.
  void hold_dropped_graphs() {
    const auto is_dropped = [](const Launched& known) { return known.handle.expired(); };
    if (std::ranges::none_of(launched_, is_dropped)) return;
    const std::shared_ptr<Marker> work = try_mark();
    if (!work) return;
    for (Launched& known : launched_)
      if (is_dropped(known)) held_.push_back({std::move(known.graph), work});
    std::erase_if(launched_, is_dropped);
  }

  void watch(const std::shared_ptr<Failure>& failure) {
    std::erase_if(launched_failures_, [&](const std::weak_ptr<Failure>& known) {
      return known.expired() || known.lock() == failure;
    });
    launched_failures_.push_back(failure);
  }

  void throw_failure() {
    std::optional<std::string> reason = failure_->take();
    for (const std::weak_ptr<Failure>& known : launched_failures_)
      if (const auto failure = known.lock(); failure && !reason) reason = failure->take();
    if (reason)
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
    if (is_capturing())
      throw Error(Errc::capture_unsupported,
                  fmt::format("{} cannot be part of a capture; the capture goes on", call));
  }

  const int device_;
  cudaStream_t stream_;
  const bool owned_;
  mutable std::mutex processors_mutex_;
  mutable std::optional<Processors> processors_;  ///< asked for once
  mutable std::string device_name_;
  std::mutex mutex_;
  std::shared_ptr<Recording> recording_;     ///< the capture begun here, or joined; may be over
  std::optional<std::thread::id> recorder_;  ///< who began it, if that was here
  cudaError_t error_before_ = cudaSuccess;   ///< the thread's last one when it began
  cudaError_t cause_ = cudaSuccess;          ///< the first new one since
  std::shared_ptr<CublasLoan> cublas_;       ///< null before the first product by it
  std::vector<Held> held_;
  std::vector<Launched> launched_;  ///< since the stream was last seen idle
  std::size_t launches_ = 0;
  std::shared_ptr<Failure> failure_ = std::make_shared<Failure>();
  std::vector<std::weak_ptr<Failure>> launched_failures_;  ///< of graphs launched here
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
std::shared_ptr<CudaStream> open_stream(int device, cudaStream_t stream, bool owned) {
  LiveStreams& streams = live_streams();
  const std::lock_guard lock(streams.mutex);
  std::erase_if(streams.by_handle, [](const auto& entry) { return entry.second.expired(); });
  auto& slot = streams.by_handle[{device, stream}];
  std::shared_ptr<CudaStream> known = slot.lock();
  if (!known) slot = known = own_by_process(std::make_unique<CudaStream>(device, stream, owned));
  return known;
}

/// "another context of GPU 0", beside the primary one of GPU `own`. Asks for no other GPU's primary
/// context: that would make it.
std::string describe_context(CUcontext context, int own) {
  if (driver().context_push(context) != CUDA_SUCCESS) return "a context that cannot be used here";
  CUdevice device = 0;
  const bool known = driver().context_device(&device) == CUDA_SUCCESS;
  driver().context_pop(&context);
  if (!known) return "a context of an unknown GPU";
  return fmt::format("{} context of GPU {}", device == own ? "another" : "a", device);
}

}  // namespace

void require_cuda_code(const detail::KernelEntry& entry) {
  if (entry.launch_on_cuda == nullptr)
    throw Error(Errc::unsupported,
                fmt::format("{} has no code for a GPU: the file that launches it was not compiled "
                            "by nvcc",
                            entry.name));
}

std::string cuda_stream_place(int device) {
  return fmt::format("GPU {}", device);
}

std::shared_ptr<detail::StreamImpl> make_cuda_stream(int device) {
  const CudaScope scope(device);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cannot make a stream");
  return open_stream(device, stream, true);
}

std::shared_ptr<detail::StreamImpl> borrow_cuda_stream(int device, cudaStream_t stream) {
  if (stream == cudaStreamPerThread)
    throw Error(Errc::invalid_argument,
                "cudaStreamPerThread is another stream on every thread: borrow one that was made "
                "by cudaStreamCreate");
  if (stream == cudaStreamLegacy) stream = nullptr;
  CUcontext owner = nullptr;
  // The default stream is the current context's, not that of the context that the scope pushes.
  if (stream == nullptr) driver().context_get(&owner);
  const CudaScope scope(device);
  if (owner == nullptr)
    check_cuda(driver().stream_context(stream, &owner),
               fmt::format("{} is no stream of CUDA", fmt::ptr(stream)));
  if (owner != primary_context(device))
    throw Error(Errc::invalid_argument,
                fmt::format("the borrowed stream belongs to {}; this rank takes streams of the "
                            "primary context of GPU {} only, and a green context is another",
                            describe_context(owner, device), device));
  return open_stream(device, stream, false);
}

}  // namespace iridium
