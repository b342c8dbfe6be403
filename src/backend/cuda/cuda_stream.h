#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "backend/backend.h"

namespace iridium {

/// A new stream on `device` that does not wait for the default stream.
std::shared_ptr<detail::StreamImpl> make_cuda_stream(int device);
/// The stream with this handle, ours or somebody else's; throws `invalid_argument` when it is
/// another device's.
std::shared_ptr<detail::StreamImpl> borrow_cuda_stream(int device, cudaStream_t stream);

/// Throws `unsupported` for a kernel whose file nvcc has not compiled.
void require_cuda_code(const detail::KernelEntry& entry);

/// Whether this thread is inside a function that CUDA called: CUDA allows no calls there.
bool in_cuda_callback();

}  // namespace iridium
