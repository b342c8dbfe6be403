// Around every CUDA call Iridium makes on a user's thread.
#pragma once

#include <cuda.h>

#include <exception>

#include "backend/cuda/driver.h"

namespace iridium {

/// While it lives, the primary context of `device` is current, and calls that would break a capture
/// running on another stream of the process do it no harm (relaxed capture mode). Puts both back,
/// also a context that is nobody's primary one. Never throws: a context that cannot be had shows in
/// the call that follows.
class CudaScope {
 public:
  explicit CudaScope(int device) {
    try {
      auto* const context = primary_context(device);
      CUcontext current = nullptr;
      driver().context_get(&current);
      if (current != context) {
        if (driver().context_push(context) != CUDA_SUCCESS) return;
        pushed_ = true;
      }
    } catch (const std::exception&) {
      return;
    }
    // Inside: on a thread without a context this call would make one on GPU 0.
    relaxed_ = driver().exchange_capture_mode(&mode_) == CUDA_SUCCESS;
  }
  ~CudaScope() {
    if (relaxed_) driver().exchange_capture_mode(&mode_);
    CUcontext context = nullptr;
    if (pushed_) driver().context_pop(&context);
  }
  CudaScope(const CudaScope&) = delete;
  CudaScope& operator=(const CudaScope&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool pushed_ = false;
  bool relaxed_ = false;
};

}  // namespace iridium
