#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "backend/backend.h"

namespace iridium {

/// A new stream on `device` that does not wait for the default stream.
std::shared_ptr<detail::StreamImpl> make_cuda_stream(int device);
/// What `StreamImpl::place` is for streams of GPU `device`.
std::string cuda_stream_place(int device);
/// The stream with this handle, ours or somebody else's. Throws `invalid_argument` when it belongs
/// to another device or to a context that is not the device's primary one, and for
/// `cudaStreamPerThread`. The default stream belongs to the calling thread's current context.
std::shared_ptr<detail::StreamImpl> borrow_cuda_stream(int device, cudaStream_t stream);

/// Throws `unsupported` for a kernel whose file nvcc has not compiled.
void require_cuda_code(const detail::KernelEntry& entry);

/// Whether this thread is inside a function that CUDA called: CUDA allows no calls there.
bool in_cuda_callback();

}  // namespace iridium
