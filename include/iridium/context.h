// A rank's membership in its job: its backend, its segment of the symmetric heap, its peers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "iridium/bootstrap.h"
#include "iridium/device/kernel.h"
#include "iridium/errors.h"
#include "iridium/stream.h"
#include "iridium/symmetric_array.h"
#include "iridium/team.h"
#include "iridium/types.h"

namespace iridium {

namespace detail {
class ContextState;
}

/// What a context is made with. What is not set comes from the environment (docs/settings.md), else
/// from defaults. Backend, heap size, lanes at once, timeout and checked mode must be the same on
/// every rank.
struct ContextOptions {
  std::optional<BackendKind> backend = {};  ///< default: the best one present
  /// The GPU to use, counted among the visible ones. Default: that of the calling thread's current
  /// CUDA context; without one the local rank, as the launcher says, modulo the number of usable
  /// GPUs (docs/gpus.md).
  std::optional<int> device = {};
  std::optional<Placement> placement = {};  ///< default: the device's own memory
  /// For tests: ranks treat each other as if no better link lay between them. Ranks that share a
  /// GPU then fence their stores for the whole system, as ranks with a GPU each do.
  std::optional<Link> link = {};
  /// How many calls of one rank, each on a different team, may be waiting at once for a kernel that
  /// still has to find room on a GPU that ranks share, waits on streams included; see
  /// `TeamOptions::beside_compute`. 1 to 64; default: 1. Two always have room to run.
  std::optional<int> lanes_at_once = {};
  std::optional<std::size_t> heap_bytes = {};  ///< size of this rank's segment
  /// The bound of every wait for other ranks, on the host and in kernels. Generous by default:
  /// ranks that die are noticed at once, and those that load or compile something are waited for.
  std::optional<std::chrono::milliseconds> timeout = {};
  /// The bound of every wait while a context or a team is made. May differ between ranks.
  std::optional<std::chrono::milliseconds> construction_timeout = {};
  std::optional<bool> checked = {};  ///< checked mode: accesses to peers, collective calls
  // How the host backend runs blocks, for testing kernels; a GPU ignores both.
  std::optional<bool> split_blocks = {};  ///< four fibers per block and a real block barrier
  std::optional<std::uint64_t> schedule_seed = {};  ///< draw turns and stalls from this number
  /// Tells contexts apart that ranks make at the same time; contexts made one after another can
  /// share a name.
  std::string name = "default";
  /// The lane of the world team.
  TeamOptions world = {};
  /// Called when a step of the construction begins: "rendezvous", "links", "segments", "window",
  /// "world".
  std::function<void(std::string_view step)> on_step = {};
};

/// A rank's membership.
///
/// Construction is collective over the job. Each of its waits ends within the construction timeout
/// and names the ranks that were missing and the step they were missing at. What fails on one rank,
/// all throw. Destruction is local and never blocks: peers that still need this rank get
/// `peer_left`. Work it has queued still runs; when the process ends before that is done, peers get
/// `peer_lost`. Thread safety: everything may be called from any thread; collective calls are
/// serialised and must come in the same order on every rank.
class Context {
 public:
  /// Joins the job found in the environment.
  explicit Context(const ContextOptions& options = {});
  /// Joins `job`.
  explicit Context(const Job& job, const ContextOptions& options = {});
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  int rank() const;
  int size() const;
  BackendKind backend() const;
  Placement placement() const;
  /// The number of this rank's GPU, as this process counts them; -1 on CPUs.
  int device() const;
  /// How kernels of this rank reach the segment of `rank`; throws `invalid_argument` when there is
  /// no such rank.
  Link link(int rank) const;
  /// See `ContextOptions`.
  int lanes_at_once() const;
  std::chrono::milliseconds timeout() const;
  /// The segment's size: the heap bytes asked for, rounded up to the backend's granularity.
  std::size_t heap_bytes() const;
  /// Where this rank's segment begins.
  std::byte* segment() const;
  /// Bytes between the segments of neighbouring ranks in the window.
  std::size_t stride() const;

  /// Allocates `count` elements on every rank. Collective over the world: every rank asks for the
  /// same number of bytes and the same alignment, else all throw `mismatch`. Throws `out_of_memory`
  /// on every rank alike.
  template <class T>
  SymmetricArray<T> allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
      throw Error(Errc::out_of_memory, "allocate: the number of bytes does not fit 64 bits");
    return SymmetricArray<T>(allocate_bytes(count * sizeof(T), alignof(T)), count);
  }

  /// Whether [pointer, pointer + bytes) lies inside one live symmetric array of this rank.
  bool is_symmetric(const void* pointer, std::size_t bytes) const;

  /// The address of `rank`'s counterpart of my object at `pointer`. Throws `invalid_argument` off
  /// the heap.
  template <class T>
  T* at(T* pointer, int rank) const {
    return static_cast<T*>(translate(const_cast<std::remove_const_t<T>*>(pointer), rank));
  }

  /// The team of all ranks, in order.
  Team world() const;
  /// A team of `ranks`, in this order. Collective over the world, also for ranks not in the list:
  /// they get a handle that answers `is_member()` with false. Ranks compare version, lane, tuning
  /// table, checked mode and timeout; a difference is an error that names both ranks. What a rank's
  /// own arguments are refused for, it throws at once; the others then wait for it until the
  /// construction timeout.
  Team make_team(std::span<const int> ranks, const TeamOptions& options = {});
  Team make_team(std::initializer_list<int> ranks, const TeamOptions& options = {}) {
    return make_team(std::span(ranks.begin(), ranks.size()), options);
  }

  /// `world().barrier()`.
  void barrier();

  /// A new stream on this rank's device.
  Stream make_stream();
  /// A stream made elsewhere, by its backend's handle. It must live until the last `StreamRef` to
  /// it is gone.
  StreamRef borrow_stream(void* native_handle);

  /// Runs `grid.blocks` blocks of `kernel` on the stream; returns at once, and can be captured. A
  /// kernel is a trivially copyable value with `IR_DEVICE void operator()(Block) const`, or
  /// `BlockOf<threads>`. Not collective. A file that launches kernels on GPUs is compiled by nvcc;
  /// from other files that throws `unsupported`, and the host backend works from both.
  template <class Kernel, class Compiler = detail::ThisCompiler>
  void launch(StreamRef& stream, Grid grid, const Kernel& kernel) const {
    launch_kernel(stream, grid, detail::kernel_entry<Kernel, Compiler>(), &kernel);
  }
  template <class Kernel, class Compiler = detail::ThisCompiler>
  void launch(StreamRef& stream, int blocks, const Kernel& kernel) const {
    launch<Kernel, Compiler>(stream, Grid{.blocks = blocks}, kernel);
  }

  /// Loads a kernel onto the device. Otherwise its first launch does, which may wait for kernels
  /// that are running: dangerous while one of them waits for this rank. The library's own kernels
  /// are loaded when the context is made.
  template <class Kernel, class Compiler = detail::ThisCompiler>
  void prepare() const {
    prepare_kernel(detail::kernel_entry<Kernel, Compiler>());
  }

 private:
  void launch_kernel(StreamRef& stream, Grid grid, const detail::KernelEntry& entry,
                     const void* kernel) const;
  void prepare_kernel(const detail::KernelEntry& entry) const;
  std::shared_ptr<detail::Allocation> allocate_bytes(std::size_t bytes, std::size_t alignment);
  void* translate(void* pointer, int rank) const;
  std::shared_ptr<detail::ContextState> state_;
};

}  // namespace iridium
