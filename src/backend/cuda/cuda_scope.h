// Around every CUDA call Iridium makes on a user's thread.
#pragma once

#include <cuda_runtime_api.h>

namespace iridium {

/// While it lives, `device` is current, and calls that would break a capture running on another
/// stream of the process do it no harm (relaxed capture mode). Puts both back. Never throws: a
/// device that cannot be set shows in the call that follows.
class CudaScope {
 public:
  explicit CudaScope(int device) {
    static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_));
    static_cast<void>(cudaGetDevice(&before_));
    if (before_ != device) static_cast<void>(cudaSetDevice(device));
    changed_ = before_ != device;
  }
  ~CudaScope() {
    if (changed_) static_cast<void>(cudaSetDevice(before_));
    static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_));
  }
  CudaScope(const CudaScope&) = delete;
  CudaScope& operator=(const CudaScope&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace iridium
