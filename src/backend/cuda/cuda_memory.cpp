#include "backend/cuda/cuda_memory.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "backend/cuda/cuda_error.h"
#include "backend/cuda/cuda_scope.h"
#include "backend/cuda/cuda_stream.h"
#include "backend/cuda/driver.h"
#include "base/text.h"
#include "iridium/errors.h"

namespace iridium {
namespace {

CUmemAllocationProp properties(const CudaPlace& place) {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (place.placement == Placement::device) {
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, place.device};
    prop.allocFlags.gpuDirectRDMACapable = 0;
  } else {
    prop.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, place.numa_node};
  }
  return prop;
}

/// A physical allocation; mappings keep it alive after this handle is gone.
class MemoryHandle {
 public:
  explicit MemoryHandle(CUmemGenericAllocationHandle handle) : handle_(handle) {}
  ~MemoryHandle() { driver().mem_release(handle_); }
  MemoryHandle(const MemoryHandle&) = delete;
  MemoryHandle& operator=(const MemoryHandle&) = delete;
  CUmemGenericAllocationHandle get() const { return handle_; }

 private:
  CUmemGenericAllocationHandle handle_;
};

/// For errors of mapping GPU memory of another rank: what an import lets pass, the map or the
/// access may refuse.
std::string hint_at_hidden_gpus(int rank) {
  return fmt::format(
      " (where a container, a scheduler's --gpus-per-task or CUDA_VISIBLE_DEVICES hides the GPU of "
      "rank {} here, let every rank see all GPUs; each takes its own by its local rank; where the "
      "GPUs have no peer access, set IRIDIUM_PLACEMENT=host)",
      rank);
}

class CudaWindow final : public Window {
 public:
  CudaWindow(const CudaPlace& place, int ranks, std::size_t stride)
      : place_(place), mapped_(static_cast<std::size_t>(ranks), false) {
    const CudaScope scope(place_.device);
    bytes_ = static_cast<std::size_t>(ranks) * stride;
    CUdeviceptr address = 0;
    check_cuda(
        driver().mem_reserve(&address, bytes_, 0, 0, 0),
        fmt::format("cannot reserve {} of addresses for {} segments", format_bytes(bytes_), ranks));
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are numbers
    base_ = reinterpret_cast<std::byte*>(address);
    stride_ = stride;
  }

  ~CudaWindow() override {
    const CudaScope scope(place_.device);
    for (std::size_t rank = 0; rank < mapped_.size(); ++rank)
      if (mapped_[rank]) driver().mem_unmap(address(static_cast<int>(rank)), stride_);
    driver().mem_unreserve(address(0), bytes_);
  }

  bool calls_are_allowed_here() const override { return !in_cuda_callback(); }

  void map(int rank, const FileDescriptor& descriptor) override {
    const CudaScope scope(place_.device);
    const std::string what =
        fmt::format("cannot map the segment of rank {} on GPU {}{}", rank, place_.device,
                    place_.placement == Placement::device ? hint_at_hidden_gpus(rank) : "");
    CUmemGenericAllocationHandle imported = 0;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver takes the descriptor so
    void* number = reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor.get()));
    check_cuda(driver().mem_import(&imported, number, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
               what);
    const MemoryHandle handle(imported);
    check_cuda(driver().mem_map(address(rank), stride_, 0, handle.get(), 0), what);
    mapped_[static_cast<std::size_t>(rank)] = true;
    std::vector<CUmemAccessDesc> access = {
        {{CU_MEM_LOCATION_TYPE_DEVICE, place_.device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    if (place_.placement == Placement::host)
      access.push_back(
          {{CU_MEM_LOCATION_TYPE_HOST_NUMA, place_.numa_node}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
    check_cuda(driver().mem_set_access(address(rank), stride_, access.data(), access.size()), what);
  }

 private:
  CUdeviceptr address(int rank) const { return reinterpret_cast<CUdeviceptr>(segment(rank)); }

  CudaPlace place_;
  std::size_t bytes_ = 0;
  std::vector<bool> mapped_;
};

}  // namespace

std::size_t segment_granularity(const CudaPlace& place) {
  const CudaScope scope(place.device);
  const CUmemAllocationProp prop = properties(place);
  std::size_t bytes = 0;
  check_cuda(driver().mem_granularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
             "cannot ask for the granularity of GPU memory");
  return bytes;
}

FileDescriptor create_cuda_segment(const CudaPlace& place, std::size_t bytes) {
  const CudaScope scope(place.device);
  const CUmemAllocationProp prop = properties(place);
  CUmemGenericAllocationHandle created = 0;
  check_cuda(driver().mem_create(&created, bytes, &prop, 0),
             fmt::format("cannot make a segment of {} in {} memory of GPU {}", format_bytes(bytes),
                         name(place.placement), place.device));
  const MemoryHandle handle(created);
  int number = -1;
  check_cuda(
      driver().mem_export(&number, handle.get(), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
      "cannot export a segment as a descriptor");
  return FileDescriptor(number);
}

std::shared_ptr<Window> open_cuda_window(const CudaPlace& place, int ranks, std::size_t stride) {
  return std::make_shared<CudaWindow>(place, ranks, stride);
}

namespace {

struct PinnedMemory {
  std::mutex mutex;
  std::multimap<std::size_t, void*> unused;
};

/// Never destroyed: memory may come back while the process exits.
PinnedMemory& pinned_memory() {
  static auto& memory = *new PinnedMemory;
  return memory;
}

void* take_pinned(int device, std::size_t bytes) {
  PinnedMemory& pinned = pinned_memory();
  {
    const std::lock_guard lock(pinned.mutex);
    if (auto found = pinned.unused.extract(bytes)) return found.mapped();
  }
  const CudaScope scope(device);
  void* memory = nullptr;
  check_cuda(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
             fmt::format("cannot pin {} of host memory", format_bytes(bytes)));
  return memory;
}

}  // namespace

std::shared_ptr<void> allocate_pinned(int device, std::size_t bytes) {
  void* memory = take_pinned(device, bytes);
  std::memset(memory, 0, bytes);
  return {memory, [bytes](void* address) {
            PinnedMemory& pinned = pinned_memory();
            const std::lock_guard lock(pinned.mutex);
            pinned.unused.emplace(bytes, address);
          }};
}

}  // namespace iridium
