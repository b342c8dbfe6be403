// Segments and windows in the driver's virtual memory.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/backend.h"

namespace iridium {

/// Where a rank's segment lies and who maps it.
struct CudaPlace {
  int device = 0;
  Placement placement = Placement::device;
  int numa_node = 0;  ///< the host's node nearest to the device, for `Placement::host`
};

/// Sizes of segments are multiples of this.
std::size_t segment_granularity(const CudaPlace& place);
FileDescriptor create_cuda_segment(const CudaPlace& place, std::size_t bytes);
std::shared_ptr<Window> open_cuda_window(const CudaPlace& place, int ranks, std::size_t stride);

/// Zeroed host memory that kernels reach at the same address. Freeing it never waits for the
/// device: it is kept for the next request of the same size.
std::shared_ptr<void> allocate_pinned(int device, std::size_t bytes);

}  // namespace iridium
