// NVIDIA GPUs: segments in the driver's virtual memory, streams and graphs of the CUDA runtime.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"

namespace iridium {

/// Creates no CUDA context.
BackendInfo describe_cuda_backend();
/// Why there is no usable GPU; empty when there is one. Creates no CUDA context.
std::string why_no_cuda();
/// Whether a driver is loaded that does not say, in this answer of `why_no_cuda`, that it has no
/// GPU, so that somebody may expect its GPUs to be used.
bool expects_cuda_gpus(const std::string& why_not);
std::unique_ptr<Backend> make_cuda_backend(const BackendRequest& request);

}  // namespace iridium
