#include "backend/cuda/cuda_error.h"

#include <fmt/format.h>

#include "iridium/errors.h"

namespace iridium {
namespace {

Errc code_of(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
      return Errc::out_of_memory;
    case cudaErrorInvalidResourceHandle:
    case cudaErrorInvalidDevice:
    case cudaErrorInvalidValue:
      return Errc::invalid_argument;
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorNotSupported:
      return Errc::unsupported;
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
      return Errc::stream_failed;
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureMerge:
      return Errc::capture_unsupported;
    default:
      return Errc::system;
  }
}

/// What a person can do about it, where that is known.
const char* advice(cudaError_t status) {
  switch (status) {
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsServerNotReady:
      return " (the MPS daemon in CUDA_MPS_PIPE_DIRECTORY does not serve this user: it may be "
             "another user's)";
    case cudaErrorMpsMaxClientsReached:
    case cudaErrorMpsMaxConnectionsReached:
      return " (the MPS daemon has no room for another client)";
    case cudaErrorInsufficientDriver:
      return " (the driver is older than this build's CUDA runtime)";
    case cudaErrorSystemNotReady:
      return " (on machines with NVSwitch the fabric manager must run)";
    case cudaErrorOperatingSystem:
      return " (a process in a pid namespace of its own needs a /proc of that namespace)";
    case cudaErrorDevicesUnavailable:
      return " (another process may have the GPU in exclusive compute mode)";
    default:
      return "";
  }
}

}  // namespace

std::string describe_cuda_error(cudaError_t status) {
  return fmt::format("{} ({}){}", cudaGetErrorString(status), cudaGetErrorName(status),
                     advice(status));
}

void check_cuda(cudaError_t status, const std::string& what) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw Error(code_of(status), fmt::format("{}: {}", what, describe_cuda_error(status)));
}

void check_cuda(CUresult status, const std::string& what) {
  if (status == CUDA_SUCCESS) return;
  const cudaError_t same = runtime_error(status);
  throw Error(code_of(same), fmt::format("{}: {}", what, describe_cuda_error(same)));
}

}  // namespace iridium
