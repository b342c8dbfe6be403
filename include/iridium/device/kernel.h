// Kernels as values: how the library runs what a user wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "iridium/device/block.h"

namespace iridium {

/// How many blocks to run.
struct Grid {
  int blocks = 1;
  /// The blocks wait for each other or for other ranks, so all must run at the same time. Refused,
  /// with the numbers, when the device cannot promise that.
  bool resident = false;
  /// No other such grid of this rank runs at the same time, so that this one may have its room: as
  /// on teams with `TeamOptions::exclusive`.
  bool exclusive = false;
};

namespace detail {

/// What the library knows about a kernel's type.
struct KernelEntry {
  std::string_view name;
  std::size_t bytes;
  int threads;
  int block_bytes;  ///< see `block_bytes_of`
  int cluster;      ///< see `cluster_of`
  /// Null for kernels that only a GPU can run.
  void (*run_on_host)(const void* kernel, Seat& seat);
  // Made by nvcc, which alone can; else null. Each returns a `cudaError_t`.
  int (*launch_on_cuda)(const void* kernel, int blocks, void* stream);
  int (*load_on_cuda)();
  /// How many of its blocks a GPU with so many processors holds at the same time.
  int (*fit_on_cuda)(int processors, int& blocks);
};

/// A kernel's value may be aligned to as much as a tensor map is.
inline constexpr std::size_t most_kernel_alignment = 128;

/// `Kernel::block_bytes`: dynamic memory of a block, in bytes, beside what its code declares; 0
/// unless the kernel says so. GPUs only.
template <class Kernel>
constexpr int block_bytes_of() {
  if constexpr (requires { Kernel::block_bytes; })
    return Kernel::block_bytes;
  else
    return 0;
}

/// `Kernel::cluster`: how many neighbouring blocks form a cluster, which run at the same time and
/// reach each other's memory; 1 unless the kernel says so. NVIDIA GPUs from Hopper on only.
template <class Kernel>
constexpr int cluster_of() {
  if constexpr (requires { Kernel::cluster; })
    return Kernel::cluster;
  else
    return 1;
}

template <class Kernel>
inline constexpr bool runs_on_host = block_bytes_of<Kernel>() == 0 && cluster_of<Kernel>() == 1;

template <class Kernel, int Threads>
constexpr int threads_of(void (Kernel::*)(BlockOf<Threads>) const) {
  return Threads;
}

template <class Kernel>
constexpr std::string_view kernel_name() {
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("Kernel = ") + 9);
  return name.substr(0, name.find_first_of(";]"));
}

template <class Kernel>
void run_on_host(const void* kernel, Seat& seat) {
  constexpr int threads = threads_of(&Kernel::operator());
  (*static_cast<const Kernel*>(kernel))(BlockOf<threads>(&seat));
}

/// Which compiler has made an entry. Part of the entry's type: files of both kinds may launch the
/// same kernel in one program.
struct HostCompiler {};
struct CudaCompiler {};

#if defined(__CUDACC__)
using ThisCompiler = CudaCompiler;

/// `Kernel::blocks_per_processor`: how many blocks a multiprocessor must hold, at the expense of
/// registers; by default as many as it can.
template <class Kernel>
constexpr int least_blocks() {
  if constexpr (requires { Kernel::blocks_per_processor; })
    return Kernel::blocks_per_processor;
  else
    return 1;
}

/// `Kernel::begins_early`: it calls `block.await_previous()` itself, which `LaneCall` does where a
/// call begins, and touches no memory before that but what no kernel of a stream writes: time for
/// what needs only its arguments. All its threads come there.
template <class Kernel>
inline constexpr bool begins_early = false;
template <class Kernel>
  requires requires { Kernel::begins_early; }
inline constexpr bool begins_early<Kernel> = Kernel::begins_early;

template <class Kernel, int Threads>
__global__ void __launch_bounds__(Threads, least_blocks<Kernel>())
    run_on_cuda(const __grid_constant__ Kernel kernel) {
  const BlockOf<Threads> block;
  if constexpr (begins_early<Kernel>)
    target::fetch_arguments(&kernel);
  else
    block.await_previous();
  kernel(block);
}

template <class Kernel>
struct CudaEntry {
  static constexpr int threads = threads_of(&Kernel::operator());
  static constexpr int block_bytes = block_bytes_of<Kernel>();
  static constexpr int cluster = cluster_of<Kernel>();

  static int launch(const void* kernel, int blocks, void* stream) {
    if (const cudaError_t error = allow_block_memory(); error != cudaSuccess) return error;
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = configuration(blocks, attributes);
    config.stream = static_cast<cudaStream_t>(stream);
    if (waits_for_previous()) {
      cudaLaunchAttribute& starts_early = attributes[config.numAttrs++];
      starts_early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      starts_early.val.programmaticStreamSerializationAllowed = 1;
    }
    void* arguments[] = {const_cast<void*>(kernel)};
    return cudaLaunchKernelExC(
        &config, reinterpret_cast<const void*>(&run_on_cuda<Kernel, threads>), arguments);
  }
  static int load() {
    if (const cudaError_t error = share_memory(); error != cudaSuccess) return error;
    cudaFuncAttributes attributes = {};
    return cudaFuncGetAttributes(&attributes, run_on_cuda<Kernel, threads>);
  }
  static int fit(int processors, int& blocks) {
    if (const cudaError_t error = share_memory(); error != cudaSuccess) return error;
    int per_processor = 0;
    const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &per_processor, run_on_cuda<Kernel, threads>, threads, block_bytes);
    blocks = per_processor * processors;
    if (error != cudaSuccess || cluster == 1) return error;
    // A cluster runs within one of the GPU's groups of processors: not all of them can be used.
    cudaLaunchAttribute attributes[2] = {};
    const cudaLaunchConfig_t config = configuration(processors * cluster, attributes);
    int clusters = 0;
    const cudaError_t cluster_error =
        cudaOccupancyMaxActiveClusters(&clusters, run_on_cuda<Kernel, threads>, &config);
    if (clusters * cluster < blocks) blocks = clusters * cluster;
    return cluster_error;
  }

 private:
  /// Whether its code has the wait for the kernel in front of it, without which it may not be put
  /// on the GPU before that has ended: code for older GPUs has none, wherever it runs.
  static bool waits_for_previous() {
    static const bool waits = [] {
      cudaFuncAttributes attributes = {};
      return cudaFuncGetAttributes(&attributes, run_on_cuda<Kernel, threads>) == cudaSuccess &&
             attributes.ptxVersion >= 90;
    }();
    return waits;
  }
  /// A multiprocessor divides its memory between blocks and cache anew only when it is empty. With
  /// all that blocks can have, kernels that need less can start beside one that waits; the other
  /// way round they could not.
  static cudaError_t share_memory() {
    if (const cudaError_t error = allow_block_memory(); error != cudaSuccess) return error;
    return cudaFuncSetAttribute(run_on_cuda<Kernel, threads>,
                                cudaFuncAttributePreferredSharedMemoryCarveout,
                                cudaSharedmemCarveoutMaxShared);
  }
  /// Holds for the current GPU, of which a process may use several: asked for at every launch.
  static cudaError_t allow_block_memory() {
    if constexpr (block_bytes == 0)
      return cudaSuccess;
    else
      return cudaFuncSetAttribute(run_on_cuda<Kernel, threads>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, block_bytes);
  }
  static cudaLaunchConfig_t configuration(int blocks, cudaLaunchAttribute* attributes) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = block_bytes;
    config.attrs = attributes;
    if constexpr (cluster > 1) {
      cudaLaunchAttribute& dimension = attributes[config.numAttrs++];
      dimension.id = cudaLaunchAttributeClusterDimension;
      dimension.val.clusterDim = {cluster, 1, 1};
    }
    return config;
  }
};
#else
using ThisCompiler = HostCompiler;
#endif

template <class Kernel, class Compiler>
const KernelEntry& kernel_entry() {
  static_assert(std::is_trivially_copyable_v<Kernel>, "kernels are copied to where they run");
  static_assert(alignof(Kernel) <= most_kernel_alignment,
                "a kernel's value is copied to memory aligned to 128");
  static_assert(sizeof(Kernel) <= 4000, "a kernel's value fits a GPU's launch arguments");
  static_assert(block_bytes_of<Kernel>() >= 0 && cluster_of<Kernel>() >= 1,
                "block memory is not negative, and a cluster has at least one block");
  static constexpr auto on_host = [] {
    if constexpr (runs_on_host<Kernel>)
      return &run_on_host<Kernel>;
    else
      return nullptr;
  }();
  static constexpr KernelEntry entry = {
      kernel_name<Kernel>(),      sizeof(Kernel),           threads_of(&Kernel::operator()),
      block_bytes_of<Kernel>(),   cluster_of<Kernel>(),     on_host,
#if defined(__CUDACC__)
      &CudaEntry<Kernel>::launch, &CudaEntry<Kernel>::load, &CudaEntry<Kernel>::fit,
#else
      nullptr,
      nullptr,
      nullptr,
#endif
  };
  return entry;
}

}  // namespace detail

}  // namespace iridium
