// Around every CUDA call Iridium makes on a user's thread.
#pragma once

#include <cuda_runtime_api.h>

#include "backend/cuda/driver.h"

namespace iridium {

/// While it lives, `device` is current, and calls that would break a capture running on another
/// stream of the process do it no harm (relaxed capture mode). Puts both back. Never throws: a
/// device that cannot be set shows in the call that follows.
class CudaScope {
 public:
  explicit CudaScope(int device) {
    static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_));
    int before = 0;
    static_cast<void>(cudaGetDevice(&before));
    changed_ = before != device;
    if (!changed_) return;
    static_cast<void>(driver().context_get(&context_before_));
    static_cast<void>(cudaSetDevice(device));
  }
  ~CudaScope() {
    // cudaSetDevice would make a context on a device that this thread has never used.
    if (changed_) static_cast<void>(driver().context_set(context_before_));
    static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_));
  }
  CudaScope(const CudaScope&) = delete;
  CudaScope& operator=(const CudaScope&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  CUcontext context_before_ = nullptr;
  bool changed_ = false;
};

}  // namespace iridium
