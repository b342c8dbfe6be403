// What a backend must be able to do. Everything above this header knows no vendor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/process_mark.h"
#include "iridium/device/kernel.h"
#include "iridium/device/tensor_map.h"
#include "iridium/errors.h"
#include "iridium/info.h"
#include "iridium/numbers.h"
#include "iridium/stream.h"
#include "iridium/types.h"

namespace iridium {

/// A process's one mapping of every rank's segment, side by side. In-process ranks share it. Unmaps
/// on destruction.
class Window {
 public:
  virtual ~Window() = default;

  /// Maps `rank`'s segment at its place. Does nothing when another in-process rank has done so.
  virtual void map(int rank, const FileDescriptor& segment) = 0;

  /// False inside a function that a device's driver calls: neither may streams be marked there nor
  /// the last reference to this be dropped.
  virtual bool calls_are_allowed_here() const { return true; }

  /// Keeps `memory` as long as the window: kernels that use the one use the other.
  void keep(std::shared_ptr<void> memory) {
    const std::lock_guard lock(kept_mutex_);
    kept_.push_back(std::move(memory));
  }

  std::byte* segment(int rank) const { return base_ + static_cast<std::size_t>(rank) * stride_; }
  std::size_t stride() const { return stride_; }

 protected:
  std::byte* base_ = nullptr;
  std::size_t stride_ = 0;

 private:
  std::mutex kept_mutex_;
  std::vector<std::shared_ptr<void>> kept_;
};

/// A point in a stream's work.
class Marker {
 public:
  virtual ~Marker() = default;
  /// Whether everything submitted before the point is done. Never blocks.
  virtual bool reached() const = 0;
};

/// Where a stream's kernels run.
struct Processors {
  int count = 1;
  int capability = 0;  ///< of an NVIDIA GPU, as 90 for 9.0; else 0
  BackendKind backend = BackendKind::host;
  std::string_view device = {};  ///< what the vendor calls it; lives as long as the stream
};

/// A matrix for tensor copies, and the box that one copy moves: 128 bytes wide, and in a block's
/// memory with the 128-byte swizzle.
struct TensorBox {
  DataType type;     ///< fp16, bf16, fp32, or uint8 for any type of a byte
  const void* data;  ///< a multiple of 16
  std::size_t rows;
  std::size_t columns;
  std::size_t pitch;  ///< in elements; 16 divides its bytes
  int box_rows;       ///< at most 256
};

/// A product for the vendor's library: D = A × B, row by row, accumulated in fp32.
struct LibraryProduct {
  DataType type;   ///< of all three: fp16, bf16 or fp32
  bool tf32;       ///< fp32 may be multiplied so
  bool b_along_k;  ///< B has a row for every column of D, else one for every column of A
  void* d;
  const void* a;
  const void* b;
  // All of them below 2^31.
  std::size_t rows;
  std::size_t columns;
  std::size_t depth;
  // In elements.
  std::size_t d_pitch;
  std::size_t a_pitch;
  std::size_t b_pitch;
};

namespace detail {

class GraphImpl {
 public:
  virtual ~GraphImpl() = default;
  virtual std::size_t node_count() const = 0;

  const ProcessMark& process() const { return process_; }

 private:
  const ProcessMark process_;
};

/// What an `Event` names.
class EventImpl {
 public:
  virtual ~EventImpl() = default;

  const ProcessMark& process() const { return process_; }

 private:
  const ProcessMark process_;
};

/// The functions of `StreamRef`, which documents them; arguments are checked there.
class StreamImpl {
 public:
  /// Takes the end of a stream's work when the stream goes; null when nothing is left to wait for.
  using EndListener = std::function<void(const StreamImpl*, std::shared_ptr<const Marker>)>;

  StreamImpl() = default;
  StreamImpl(const StreamImpl&) = delete;
  StreamImpl& operator=(const StreamImpl&) = delete;
  virtual ~StreamImpl() { tell_end(nullptr); }

  const ProcessMark& process() const { return process_; }

  /// Where its work runs, as messages call it: "GPU 1", "the CPUs".
  virtual std::string place() const = 0;
  virtual Processors processors() const { return {}; }
  /// For kernels on this stream. Throws `unsupported` where there are no tensor copies, and
  /// `invalid_argument` for a matrix that they cannot have.
  virtual TensorMap make_tensor_map(const TensorBox&) const {
    throw Error(Errc::unsupported,
                "tensor copies need a GPU that has them; this stream runs on " + place());
  }

  /// Why the vendor's library of products cannot be used; empty when it can. Opens it.
  virtual std::string object_to_library() const { return "it is for NVIDIA GPUs"; }
  /// Submits a product to the vendor's library. The first call on a stream allocates: in a capture
  /// it throws `capture_unsupported`, and leaves the capture valid.
  virtual void multiply(const LibraryProduct&) {
    throw Error(Errc::unsupported, object_to_library());
  }

  /// The registry that has looked at this stream last, so that it need not look again.
  std::atomic<std::uint64_t> last_registry = 0;

  void at_end(EndListener listener) {
    const std::lock_guard lock(end_mutex_);
    end_listeners_.push_back(std::move(listener));
  }

  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void fill(void* to, unsigned char value, std::size_t bytes) = 0;
  virtual void call(std::function<void()> function) = 0;
  /// Runs `blocks` blocks of the kernel whose value is at `kernel`, which is copied. Throws
  /// `unsupported` for a kernel that has no code for this backend.
  virtual void launch_kernel(const KernelEntry& entry, const void* kernel, int blocks) = 0;
  virtual std::shared_ptr<const EventImpl> record() = 0;
  virtual void wait(std::shared_ptr<const EventImpl> event) = 0;
  virtual void retain(std::shared_ptr<const Resource> resource) = 0;
  /// Keeps `resource` as long as the graph that is being captured here; nothing when there is none,
  /// or when its capture was not begun by Iridium.
  virtual void retain_in_capture(std::shared_ptr<const Resource> resource) = 0;
  virtual void synchronize() = 0;
  virtual bool idle() = 0;
  virtual void begin_capture() = 0;
  virtual std::shared_ptr<const GraphImpl> end_capture() = 0;
  virtual CaptureStatus capture_status() const = 0;
  virtual void launch(std::shared_ptr<const GraphImpl> graph) = 0;
  virtual void* native_handle() const = 0;
  /// The owner is gone: no new work will come; what is queued still runs.
  virtual void close() noexcept = 0;
  /// Null while the stream is capturing and cannot be marked.
  virtual std::unique_ptr<Marker> mark() = 0;

 protected:
  /// For destructors of streams whose work goes on without them.
  void tell_end(const std::shared_ptr<const Marker>& last_work) {
    std::vector<EndListener> listeners;
    {
      const std::lock_guard lock(end_mutex_);
      listeners.swap(end_listeners_);
    }
    for (const EndListener& tell : listeners) tell(this, last_work);
  }

 private:
  const ProcessMark process_;
  std::mutex end_mutex_;
  std::vector<EndListener> end_listeners_;
};

}  // namespace detail

/// The grids of one rank that may wait for other ranks at the same time, each on a lane of its own.
struct WaitingGrids {
  int resident = 2;        ///< so many run at the same time
  int beside_compute = 0;  ///< so many leave room for a kernel that computes; 0: none needs to
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual BackendKind kind() const = 0;
  virtual Placement placement() const = 0;
  /// Where this rank runs, in a form `check_peers` understands; empty where that does not matter.
  virtual std::string place() const = 0;
  /// The number of this rank's device; -1 where there are none to number.
  virtual int device() const { return -1; }
  /// What `StreamImpl::place` is for streams that can run this rank's kernels.
  virtual std::string stream_place() const = 0;
  /// What the vendor calls the device.
  virtual std::string device_name() const = 0;
  /// Learns where every rank runs: entry r is rank r's place. Throws when they cannot work
  /// together; warns when they will be slow.
  virtual void check_peers(int rank, const std::vector<std::string>& places) = 0;
  /// Segment sizes are multiples of this.
  virtual std::size_t granularity() const = 0;
  /// Throws `out_of_memory` when `ranks` segments of `bytes` bytes cannot be had here.
  virtual void check_heap(std::size_t bytes, int ranks) const = 0;
  /// Memory for this rank's segment, as a descriptor peers can map.
  virtual FileDescriptor create_segment(std::size_t bytes) = 0;
  /// This process's window of the context called `context_id`: a new one, or the one another
  /// in-process rank has opened.
  virtual std::shared_ptr<Window> open_window(std::uint64_t context_id, int ranks,
                                              std::size_t stride) = 0;
  /// Sets memory of this rank's segment to zero, now.
  virtual void zero(std::byte* at, std::size_t bytes) = 0;
  /// Copies from the host's memory into this rank's segment, now.
  virtual void write(std::byte* to, const void* from, std::size_t bytes) = 0;
  /// Zeroed memory that the host and kernels of this rank reach at the same address.
  virtual std::shared_ptr<void> allocate_host_visible(std::size_t bytes) = 0;

  /// How this rank's kernels reach the segment of `peer`, once `check_peers` was called.
  virtual Link link(int peer) const = 0;
  /// Why this rank's kernels cannot use the memory at `address`, as the end of "the memory is ...";
  /// empty when they can. Asks the driver.
  virtual std::string object_to_memory(const void* address) const = 0;
  /// The largest grid of an ordinary kernel whose blocks may wait for each other, when every rank
  /// on the device has as many in each of several grids.
  virtual int max_blocks(const WaitingGrids& grids) const = 0;
  /// Throws `invalid_argument`, with the numbers, when that many blocks cannot wait for each other
  /// in each of so many grids of every rank on the device.
  virtual void check_resident(const detail::KernelEntry& entry, int blocks, int grids) const = 0;
  /// Why this rank's device cannot run the kernel, with the numbers; empty when it can.
  virtual std::string object_to_kernel(const detail::KernelEntry& entry) const = 0;
  /// Loads the kernel onto the device, so that its first launch need not.
  virtual void prepare(const detail::KernelEntry& entry) = 0;

  virtual std::shared_ptr<detail::StreamImpl> make_stream() = 0;
  /// Throws `invalid_argument` for a handle that is no stream of this backend.
  virtual std::shared_ptr<detail::StreamImpl> borrow_stream(void* native_handle) = 0;
};

/// What a rank wants to run on.
struct BackendRequest {
  std::optional<BackendKind> kind = {};  ///< default: the best one present
  std::optional<int> device = {};        ///< default: see `ContextOptions`
  Placement placement = Placement::device;
  std::optional<Link> link = {};  ///< see `ContextOptions`
  int rank = 0;
  std::optional<int> local_rank = {};    ///< among the ranks on this host, as the launcher says
  std::string local_rank_variable = {};  ///< where it says so
  bool split_blocks = false;             ///< see `ContextOptions`
  std::optional<std::uint64_t> schedule_seed = {};  ///< see `ContextOptions`
  std::filesystem::path machine_root = "/";         ///< for tests: see `sign_of_nvidia_gpu`
};

/// Throws `unsupported` with the reason when the backend asked for is off.
std::unique_ptr<Backend> make_backend(const BackendRequest& request);

}  // namespace iridium
