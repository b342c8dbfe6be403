// The GPUs that this process sees, and how they reach each other. Asks the driver and NVML alone:
// the runtime would make contexts.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "iridium/types.h"

namespace iridium {

struct Gpu {
  int device = 0;  ///< its number in this process
  CUdevice handle = 0;
  std::string uuid;  ///< "GPU-…": the same for every process
};

/// Every GPU that this process sees, in the order of their numbers. Throws what the driver says.
std::vector<Gpu> visible_gpus();

int attribute(const Gpu& gpu, CUdevice_attribute which);
std::string gpu_name(const Gpu& gpu);
std::size_t gpu_memory(const Gpu& gpu);

/// Why Iridium does not run on `gpu`; empty when it does.
std::string object_to_gpu(const Gpu& gpu, Placement placement);

/// Those of `gpus` on which Iridium runs; all of them where it runs on none.
std::vector<Gpu> usable_gpus(const std::vector<Gpu>& gpus, Placement placement);

/// Whether code built for `targets`, CMake's CUDA_ARCHITECTURES with commas, runs on GPUs of
/// compute capability `major`.`minor`.
bool runs_on(std::string_view targets, int major, int minor);

/// How kernels on `gpu` reach memory of the GPU called `uuid`, one of `visible` or not.
Link gpu_link(const Gpu& gpu, const std::string& uuid, const std::vector<Gpu>& visible);
/// How kernels on `gpu` reach the host's memory that another GPU's kernels use, too.
Link host_memory_link(const Gpu& gpu);

}  // namespace iridium
