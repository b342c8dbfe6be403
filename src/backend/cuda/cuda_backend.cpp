#include "backend/cuda/cuda_backend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "backend/cuda/cuda_error.h"
#include "backend/cuda/cuda_memory.h"
#include "backend/cuda/cuda_scope.h"
#include "backend/cuda/cuda_stream.h"
#include "backend/cuda/driver.h"
#include "backend/cuda/gpu.h"
#include "backend/cuda/gpu_place.h"
#include "backend/cuda/mps.h"
#include "backend/cuda/room.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "iridium/errors.h"

namespace iridium {
namespace {

/// Another one for every process, also where two have the same number in namespaces of their own.
std::string process_name() {
  static const std::uint64_t id = random_id();
  return fmt::format("{}-{:x}", ::getpid(), id);
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const BackendRequest& request)
      : visible_(visible_gpus()), choice_(choose_gpu(request, visible_)) {
    place_.device = choice_.gpu.device;
    place_.placement = request.placement;
    best_link_ = request.link.value_or(Link::shared);
    const std::string objection = object_to_gpu(choice_.gpu, request.placement);
    if (!objection.empty())
      throw Error(Errc::unsupported,
                  fmt::format("GPU {} cannot hold a segment in {} memory: {}", place_.device,
                              name(request.placement), objection));
    place_.numa_node = std::max(0, attribute(choice_.gpu, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID));
    primary_context(place_.device);
    shared_gpu_.processors = attribute(choice_.gpu, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    shared_gpu_.major = attribute(choice_.gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    reaches_pageable_memory_ =
        attribute(choice_.gpu, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) != 0;
    device_name_ = gpu_name(choice_.gpu);
  }

  BackendKind kind() const override { return BackendKind::cuda; }
  Placement placement() const override { return place_.placement; }
  int device() const override { return place_.device; }
  std::string stream_place() const override { return cuda_stream_place(place_.device); }

  std::string place() const override {
    GpuPlace place = {.process = process_name(),
                      .device = place_.device,
                      .uuid = choice_.gpu.uuid,
                      .reason = choice_.reason,
                      .is_explicit = choice_.is_explicit,
                      .usable = {}};
    for (const Gpu& gpu : usable_gpus(visible_, place_.placement)) place.usable.push_back(gpu.uuid);
    return encode(place);
  }
  std::string device_name() const override { return device_name_; }

  void check_peers(int rank, const std::vector<std::string>& texts) override {
    std::vector<GpuPlace> places;
    for (const std::string& text : texts) places.push_back(parse_gpu_place(text));
    check_places(places);
    std::vector<int> sharing;
    links_.clear();
    for (int peer = 0; peer < static_cast<int>(places.size()); ++peer) {
      const GpuPlace& other = places[static_cast<std::size_t>(peer)];
      if (other.uuid == choice_.gpu.uuid) sharing.push_back(peer);
      links_.push_back(peer == rank ? Link::shared : std::max(best_link_, link_to(peer, other)));
    }
    shared_gpu_.ranks = static_cast<int>(sharing.size());
    rank_ = rank;
    warns_ = sharing.front() == rank;
    log(LogLevel::info, rank, "GPU {}, {}, {}, because {}; links: {}", place_.device, device_name_,
        choice_.gpu.uuid, choice_.reason, describe_links(rank));
    if (sharing.size() > 1 && warns_ &&
        attribute(choice_.gpu, CU_DEVICE_ATTRIBUTE_MPS_ENABLED) == 0)
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
    check_cuda(driver().mem_info(&free, &total), "cannot ask for the free memory");
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
    own_stream().fill(at, 0, bytes);
    own_stream().synchronize();
  }

  void write(std::byte* to, const void* from, std::size_t bytes) override {
    own_stream().copy(to, from, bytes);
    own_stream().synchronize();
  }

  std::shared_ptr<void> allocate_host_visible(std::size_t bytes) override {
    return allocate_pinned(place_.device, bytes);
  }

  Link link(int peer) const override { return links_[static_cast<std::size_t>(peer)]; }

  std::string object_to_memory(const void* address) const override {
    const CudaScope scope(place_.device);
    const auto ask = [address](void* value, CUpointer_attribute which) {
      return driver().pointer_attribute(value, which, reinterpret_cast<CUdeviceptr>(address)) ==
             CUDA_SUCCESS;
    };
    // CUDA says so, whoever mapped it, and with peer access also for another GPU's memory.
    CUdeviceptr reached = 0;
    if (ask(&reached, CU_POINTER_ATTRIBUTE_DEVICE_POINTER)) return {};
    CUmemorytype type = {};
    if (!ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE)) {
      if (reaches_pageable_memory_) return {};
      return fmt::format(
          "memory of the host that kernels on {} do not reach: pin it "
          "(cudaHostAlloc, cudaHostRegister) or copy it there",
          stream_place());
    }
    unsigned int is_managed = 0;
    int owner = place_.device;
    if (type != CU_MEMORYTYPE_DEVICE || !ask(&owner, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) ||
        owner == place_.device ||
        (ask(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED) && is_managed != 0))
      return {};
    return fmt::format(
        "memory of GPU {} that kernels on {} do not reach: enable peer access "
        "(cudaDeviceEnablePeerAccess) or copy it there",
        owner, stream_place());
  }

  int max_blocks(const WaitingGrids& grids) const override {
    const int threads = attribute(choice_.gpu, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    int blocks =
        resident_blocks(shared_gpu_, library_blocks_per_processor(threads), grids.resident);
    if (grids.beside_compute > 0) {
      const int beside_compute = blocks_beside_compute(shared_gpu_, grids.beside_compute);
      if (beside_compute == 0 && warns_ && !warned_of_no_room_.exchange(true))
        log(LogLevel::warn, rank_,
            "calls leave no room for kernels that compute on GPU {}: {} ranks with {} lanes at "
            "once, and {} processors",
            place_.device, shared_gpu_.ranks, grids.beside_compute, shared_gpu_.processors);
      blocks = std::min(blocks, beside_compute);
    }
    return std::max(1, blocks);
  }

  void check_resident(const detail::KernelEntry& entry, int blocks, int grids) const override {
    const int held = blocks_at_once(entry);
    const int limit = shared_blocks(shared_gpu_, held, grids);
    if (blocks > limit)
      throw Error(
          Errc::invalid_argument,
          fmt::format("{} blocks of {} with {} threads cannot all be resident: GPU {} holds {} on "
                      "its {} processors, shared by {} ranks with {} lanes each, which leaves {}",
                      blocks, entry.name, entry.threads, place_.device, held,
                      shared_gpu_.processors, shared_gpu_.ranks, grids, limit));
  }

  std::string object_to_kernel(const detail::KernelEntry& entry) const override {
    if (entry.block_bytes == 0 && entry.cluster == 1) return {};
    const int most = attribute(choice_.gpu, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    if (entry.block_bytes > most)
      return fmt::format("a block of {} needs {} bytes of block memory, and GPU {} has {}",
                         entry.name, entry.block_bytes, place_.device, most);
    if (entry.cluster > 1 && attribute(choice_.gpu, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0)
      return fmt::format("{} runs in clusters of {} blocks, and GPU {} has no clusters", entry.name,
                         entry.cluster, place_.device);
    return {};
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
  Link link_to(int peer, const GpuPlace& other) const {
    if (place_.placement == Placement::host)
      return other.uuid == choice_.gpu.uuid ? Link::shared : host_memory_link(choice_.gpu);
    const Link link = gpu_link(choice_.gpu, other.uuid, visible_);
    if (link == Link::none)
      throw Error(Errc::unsupported,
                  fmt::format("GPU {} cannot access the memory of {}, which rank {} uses: "
                              "IRIDIUM_PLACEMENT=host (ContextOptions::placement) puts the heap "
                              "into the host's memory, which both reach",
                              place_.device, other.uuid, peer),
                  {peer});
    return link;
  }

  /// "nvlink to ranks 1, 2; pcie to rank 3".
  std::string describe_links(int rank) const {
    std::map<Link, std::vector<int>> ranks;
    for (std::size_t peer = 0; peer < links_.size(); ++peer)
      if (static_cast<int>(peer) != rank) ranks[links_[peer]].push_back(static_cast<int>(peer));
    std::string text;
    for (const auto& [link, peers] : ranks)
      text += fmt::format("{}{} to {}", text.empty() ? "" : "; ", name(link), list_ranks(peers));
    return text.empty() ? "none needed" : text;
  }

  /// For what is not on any user's stream. Made when it is needed.
  detail::StreamImpl& own_stream() {
    const std::lock_guard lock(own_stream_mutex_);
    if (!own_stream_) own_stream_ = make_cuda_stream(place_.device);
    return *own_stream_;
  }

  /// Asked of the driver once per kernel: this is on every launch's path.
  int blocks_at_once(const detail::KernelEntry& entry) const {
    const std::lock_guard lock(fitting_mutex_);
    const auto known = fitting_.find(&entry);
    if (known != fitting_.end()) return known->second;
    require_cuda_code(entry);
    const CudaScope scope(place_.device);
    int blocks = 0;
    check_cuda(static_cast<cudaError_t>(entry.fit_on_cuda(shared_gpu_.processors, blocks)),
               fmt::format("cannot size {}", entry.name));
    return fitting_[&entry] = blocks;
  }

  const std::vector<Gpu> visible_;
  const GpuChoice choice_;
  CudaPlace place_;
  std::string device_name_;
  SharedGpu shared_gpu_;
  int rank_ = -1;
  bool warns_ = false;  ///< for all ranks on the GPU: it is the first of them
  mutable std::atomic<bool> warned_of_no_room_ = false;
  bool reaches_pageable_memory_ = false;
  Link best_link_ = Link::shared;
  std::vector<Link> links_;  ///< by rank
  mutable std::mutex fitting_mutex_;
  mutable std::map<const detail::KernelEntry*, int> fitting_;  ///< blocks at once
  std::mutex own_stream_mutex_;
  std::shared_ptr<detail::StreamImpl> own_stream_;
};

Capability capability(std::string what, int value, std::string detail) {
  return {std::move(what), value != 0, std::move(detail)};
}

constexpr const char* finds_no_gpu = "the driver finds no GPU";

std::vector<Capability> capabilities(const Gpu& gpu) {
  const std::string lacks = object_to_gpu(gpu, Placement::device);
  const std::string host_lacks = object_to_gpu(gpu, Placement::host);
  return {capability("segments in device memory", lacks.empty(), lacks),
          capability("segments in host memory", host_lacks.empty(), host_lacks),
          capability(
              "MPS", attribute(gpu, CU_DEVICE_ATTRIBUTE_MPS_ENABLED),
              "several ranks on one GPU at full speed; `iridium run` starts a daemon when needed"),
          capability("ranks as threads", 0,
                     "kernels of two ranks in one process could wait for each other for ever")};
}

}  // namespace

bool expects_cuda_gpus(const std::string& why_not) {
  // Images bring the driver's library along to machines without a GPU.
  return driver_is_loaded() && why_not != finds_no_gpu;
}

std::string why_no_cuda() {
  if (std::string objection = object_to_mps_daemon(mps_directory(), ::geteuid());
      !objection.empty())
    return objection;
  try {
    int version = 0;
    check_cuda(driver().version(&version), "cannot ask for the driver's version");
    if (version / 1000 < CUDART_VERSION / 1000)
      return fmt::format("the driver is too old: it knows CUDA {}.{}, this build needs {}.0",
                         version / 1000, version % 1000 / 10, CUDART_VERSION / 1000);
    if (driver().init(0) == CUDA_ERROR_NO_DEVICE) return finds_no_gpu;
    const std::vector<Gpu> gpus = visible_gpus();
    if (gpus.empty()) return finds_no_gpu;
    // One that cannot be used is refused by the rank that would take it.
    std::string objection;
    for (const Gpu& gpu : gpus) {
      const std::string reason = object_to_gpu(gpu, Placement::device);
      if (reason.empty()) return {};
      objection += fmt::format("{}GPU {}: {}", objection.empty() ? "" : "; ", gpu.device, reason);
    }
    return objection;
  } catch (const Error& error) {
    return error.what();
  }
}

BackendInfo describe_cuda_backend() {
  BackendInfo info = {.kind = BackendKind::cuda,
                      .available = false,
                      .reason = why_no_cuda(),
                      .devices = {},
                      .capabilities = {}};
  if (!info.reason.empty()) return info;
  try {
    const std::vector<Gpu> gpus = visible_gpus();
    for (const Gpu& gpu : gpus)
      info.devices.push_back(
          {.name = gpu_name(gpu),
           .memory_bytes = gpu_memory(gpu),
           .processors = attribute(gpu, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
           .objection = object_to_gpu(gpu, Placement::device)});
    info.capabilities = capabilities(usable_gpus(gpus, Placement::device).front());
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
