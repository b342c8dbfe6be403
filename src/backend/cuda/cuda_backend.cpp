#include "backend/cuda/cuda_backend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "backend/cuda/cuda_error.h"
#include "backend/cuda/cuda_memory.h"
#include "backend/cuda/cuda_scope.h"
#include "backend/cuda/cuda_stream.h"
#include "backend/cuda/driver.h"
#include "backend/cuda/mps.h"
#include "base/log.h"
#include "base/text.h"
#include "iridium/errors.h"

namespace iridium {
namespace {

int attribute(int device, CUdevice_attribute which) {
  CUdevice handle = 0;
  int value = 0;
  check_cuda(driver().device_get(&handle, device), fmt::format("cannot look at GPU {}", device));
  check_cuda(driver().device_get_attribute(&value, which, handle),
             fmt::format("cannot look at GPU {}", device));
  return value;
}

cudaDeviceProp properties_of(int device) {
  cudaDeviceProp properties = {};
  check_cuda(cudaGetDeviceProperties(&properties, device),
             fmt::format("cannot look at GPU {}", device));
  return properties;
}

/// A name of the device that every process of the host gives it.
std::string unique_id(int device) {
  std::string text;
  for (const char byte : properties_of(device).uuid.bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

int count_devices() {
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "cannot count the GPUs");
  return count;
}

int choose_device(const BackendRequest& request) {
  const int count = count_devices();
  const int device = request.device.value_or(request.rank % count);
  if (device < 0 || device >= count)
    throw Error(Errc::invalid_argument,
                fmt::format("GPU {} does not exist: {} visible, numbered from 0 to {}", device,
                            count, count - 1));
  return device;
}

/// What a device must have for segments in `placement`; empty when it has it.
std::string missing_feature(int device, Placement placement) {
  if (attribute(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0)
    return "it has no virtual memory management";
  if (attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) == 0)
    return "it cannot export memory as a descriptor";
  if (placement == Placement::host &&
      attribute(device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0)
    return "it cannot map host memory into its virtual memory";
  return {};
}

/// So many of a rank's grids may wait at the same time, each on a lane of its own.
constexpr int lanes_at_once = 2;

struct Place {
  std::string process;
  std::string device_id;
};

Place parse_place(const std::string& text) {
  const auto blank = text.find(' ');
  return {text.substr(0, blank),
          blank == std::string::npos ? std::string() : text.substr(blank + 1)};
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const BackendRequest& request) {
    place_.device = choose_device(request);
    place_.placement = request.placement;
    const std::string missing = missing_feature(place_.device, request.placement);
    if (!missing.empty())
      throw Error(Errc::unsupported, fmt::format("GPU {} cannot hold a segment in {} memory: {}",
                                                 place_.device, name(request.placement), missing));
    place_.numa_node = std::max(0, attribute(place_.device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID));
    const CudaScope scope(place_.device);
    check_cuda(cudaInitDevice(place_.device, 0, 0),
               fmt::format("cannot make a CUDA context on GPU {}", place_.device));
    processors_ = attribute(place_.device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    device_name_ = properties_of(place_.device).name;
    own_stream_ = make_cuda_stream(place_.device);
  }

  BackendKind kind() const override { return BackendKind::cuda; }
  Placement placement() const override { return place_.placement; }

  std::string place() const override {
    return fmt::format("{} {}", ::getpid(), unique_id(place_.device));
  }
  std::string device_name() const override { return device_name_; }

  void check_peers(int rank, const std::vector<std::string>& places) override {
    const Place mine = parse_place(places[static_cast<std::size_t>(rank)]);
    std::vector<int> sharing;
    for (int peer = 0; peer < static_cast<int>(places.size()); ++peer) {
      const Place other = parse_place(places[static_cast<std::size_t>(peer)]);
      if (peer != rank && other.process == mine.process)
        throw Error(
            Errc::unsupported,
            fmt::format(
                "ranks {} and {} are threads of one process: on a CUDA device their kernels would "
                "share its "
                "queues and could wait for each other for ever; use processes, or the host backend",
                std::min(rank, peer), std::max(rank, peer)),
            {std::min(rank, peer), std::max(rank, peer)});
      if (other.device_id == mine.device_id)
        sharing.push_back(peer);
      else
        check_peer_access(peer, other.device_id);
    }
    ranks_on_device_ = static_cast<int>(sharing.size());
    has_all_ranks_ = sharing.size() == places.size() && place_.placement == Placement::device;
    if (sharing.size() > 1 && sharing.front() == rank &&
        attribute(place_.device, CU_DEVICE_ATTRIBUTE_MPS_ENABLED) == 0)
      log(LogLevel::warn, rank,
          "{} share GPU {} without MPS: they take turns, and a barrier between them costs "
          "milliseconds instead of "
          "microseconds; `iridium run` starts an MPS daemon",
          list_ranks(sharing), place_.device);
  }

  std::size_t granularity() const override { return segment_granularity(place_); }

  void check_heap(std::size_t bytes, int) const override {
    if (place_.placement == Placement::host) return;  // making the segment says how much there is
    const CudaScope scope(place_.device);
    std::size_t free = 0;
    std::size_t total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "cannot ask for the free memory");
    if (bytes > free)
      throw Error(
          Errc::out_of_memory,
          fmt::format("a heap of {} is larger than the free memory of GPU {}, {} of {}",
                      format_bytes(bytes), place_.device, format_bytes(free), format_bytes(total)));
  }

  FileDescriptor create_segment(std::size_t bytes) override {
    return create_cuda_segment(place_, bytes);
  }

  std::shared_ptr<Window> open_window(std::uint64_t, int ranks, std::size_t stride) override {
    return open_cuda_window(place_, ranks, stride);
  }

  void zero(std::byte* at, std::size_t bytes) override {
    own_stream_->fill(at, 0, bytes);
    own_stream_->synchronize();
  }

  void write(std::byte* to, const void* from, std::size_t bytes) override {
    own_stream_->copy(to, from, bytes);
    own_stream_->synchronize();
  }

  std::shared_ptr<void> allocate_host_visible(std::size_t bytes) override {
    return allocate_pinned(place_.device, bytes);
  }

  bool has_all_ranks() const override { return has_all_ranks_; }

  int max_blocks() const override {
    const int threads =
        attribute(place_.device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    return std::max(1, resident_share(threads / Block::gpu_threads / 2));
  }

  void check_resident(const detail::KernelEntry& entry, int blocks) const override {
    const int per_processor = blocks_per_processor(entry);
    const int limit = resident_share(per_processor);
    if (blocks > limit)
      throw Error(
          Errc::invalid_argument,
          fmt::format(
              "{} blocks of {} with {} threads cannot all be resident: GPU {} holds {} on "
              "each of {} processors, shared by {} ranks with {} lanes each, which leaves {}",
              blocks, entry.name, entry.threads, place_.device, per_processor, processors_,
              ranks_on_device_, lanes_at_once, limit));
  }

  void prepare(const detail::KernelEntry& entry) override {
    require_cuda_code(entry);
    const CudaScope scope(place_.device);
    check_cuda(static_cast<cudaError_t>(entry.load_on_cuda()),
               fmt::format("cannot load {}", entry.name));
  }

  std::shared_ptr<detail::StreamImpl> make_stream() override {
    return make_cuda_stream(place_.device);
  }

  std::shared_ptr<detail::StreamImpl> borrow_stream(void* native_handle) override {
    return borrow_cuda_stream(place_.device, static_cast<cudaStream_t>(native_handle));
  }

 private:
  void check_peer_access(int peer, const std::string& device_id) const {
    for (int device = 0; device < count_devices(); ++device) {
      if (unique_id(device) != device_id) continue;
      int possible = 0;
      check_cuda(cudaDeviceCanAccessPeer(&possible, place_.device, device),
                 "cannot ask for peer access");
      if (possible == 0)
        throw Error(Errc::unsupported,
                    fmt::format("GPU {} cannot access the memory of GPU {}, which rank {} uses",
                                place_.device, device, peer),
                    {peer});
    }
  }

  /// Asked of the driver once per kernel: this is on every launch's path.
  int blocks_per_processor(const detail::KernelEntry& entry) const {
    const std::lock_guard lock(fitting_mutex_);
    const auto known = fitting_.find(&entry);
    if (known != fitting_.end()) return known->second;
    require_cuda_code(entry);
    const CudaScope scope(place_.device);
    int blocks = 0;
    check_cuda(static_cast<cudaError_t>(entry.fit_on_cuda(blocks)),
               fmt::format("cannot size {}", entry.name));
    return fitting_[&entry] = blocks;
  }
  /// A rank's share, for one lane, of the blocks that fit.
  int resident_share(int per_processor) const {
    return processors_ * per_processor / ranks_on_device_ / lanes_at_once;
  }

  CudaPlace place_;
  std::string device_name_;
  int processors_ = 0;
  int ranks_on_device_ = 1;
  bool has_all_ranks_ = false;
  mutable std::mutex fitting_mutex_;
  mutable std::map<const detail::KernelEntry*, int> fitting_;  ///< blocks per processor
  std::shared_ptr<detail::StreamImpl> own_stream_;
};

Capability capability(std::string what, int value, std::string detail) {
  return {std::move(what), value != 0, std::move(detail)};
}

std::vector<Capability> capabilities(int device) {
  const std::string lacks = missing_feature(device, Placement::device);
  const std::string host_lacks = missing_feature(device, Placement::host);
  return {capability("segments in device memory", lacks.empty(), lacks),
          capability("segments in host memory", host_lacks.empty(), host_lacks),
          capability(
              "MPS", attribute(device, CU_DEVICE_ATTRIBUTE_MPS_ENABLED),
              "several ranks on one GPU at full speed; `iridium run` starts a daemon when needed"),
          capability("ranks as threads", 0,
                     "kernels of two ranks in one process could wait for each other for ever")};
}

}  // namespace

std::string why_no_cuda() {
  if (std::string objection = object_to_mps_daemon(mps_directory(), ::geteuid());
      !objection.empty())
    return objection;
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) {
    static_cast<void>(cudaGetLastError());
    return "no NVIDIA driver is loaded";
  }
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  static_cast<void>(cudaGetLastError());
  if (status == cudaErrorInsufficientDriver)
    return fmt::format("the driver is too old: it knows CUDA {}.{}, this build needs {}.{}",
                       version / 1000, version % 1000 / 10, CUDART_VERSION / 1000,
                       CUDART_VERSION % 1000 / 10);
  if (status != cudaSuccess)
    return fmt::format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status));
  return count == 0 ? "the driver finds no GPU" : "";
}

BackendInfo describe_cuda_backend() {
  BackendInfo info = {.kind = BackendKind::cuda,
                      .available = false,
                      .reason = why_no_cuda(),
                      .devices = {},
                      .capabilities = {}};
  if (!info.reason.empty()) return info;
  try {
    for (int device = 0; device < count_devices(); ++device) {
      const cudaDeviceProp properties = properties_of(device);
      info.devices.push_back({.name = properties.name,
                              .memory_bytes = properties.totalGlobalMem,
                              .processors = properties.multiProcessorCount});
    }
    info.capabilities = capabilities(0);
    info.available = true;
  } catch (const Error& error) {
    info.reason = error.what();
  }
  return info;
}

std::unique_ptr<Backend> make_cuda_backend(const BackendRequest& request) {
  return std::make_unique<CudaBackend>(request);
}

}  // namespace iridium
