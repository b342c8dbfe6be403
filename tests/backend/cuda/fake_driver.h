// A driver, and NVML, of any number of GPUs that are not there. Streams and kernels it has none.
#pragma once

#include <cuda.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/driver.h"
#include "iridium/types.h"

namespace iridium::test {

struct FakeGpu {
  std::string name = "NVIDIA H100";
  int id = 0;  ///< its uuid ends with it
  int major = 9;
  int minor = 0;
  bool is_visible = true;
  std::map<CUdevice_attribute, int> attributes = {};  ///< others are 1
};

/// What CUDA knows of an address.
struct FakeMemory {
  CUmemorytype type = CU_MEMORYTYPE_DEVICE;
  int device = 0;  ///< by its number here
  bool is_managed = false;
  bool is_reached = true;  ///< by kernels of the current context
};

/// What a tensor map was asked for.
struct FakeTensorMap {
  CUtensorMapDataType type = {};
  const void* address = nullptr;
  std::vector<cuuint64_t> sizes;
  std::vector<cuuint64_t> strides;
  std::vector<cuuint32_t> box;
  CUtensorMapSwizzle swizzle = {};
};

/// `FakeMachine::gpus[i]`'s uuid as Iridium writes it.
std::string fake_uuid(int id);

/// While it lives, `driver()` is this machine's. One at a time.
class FakeMachine {
 public:
  explicit FakeMachine(std::vector<FakeGpu> gpus);
  ~FakeMachine();
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  /// As many visible GPUs.
  static std::vector<FakeGpu> gpus(int count);

  /// Between GPUs by index, both ways. Default: NVLink.
  void link(int a, int b, Link link);
  /// From here on `call` returns `status`; CUDA_SUCCESS: what it would.
  void fail(const std::string& call, CUresult status);
  void remove_nvml();
  /// The driver knows CUDA of this version, CUDA_VERSION's form. Default: the one compiled with.
  void set_driver_version(int version);
  /// Makes a context current that is nobody's primary one, on the GPU with this number here.
  CUcontext make_current(int device);
  CUcontext current() const;
  /// A stream of such a context.
  CUstream make_stream(int device);
  /// Other addresses are unknown to CUDA.
  void add_memory(const void* address, const FakeMemory& memory);
  /// Of all tensor maps; a map's first word is its number here.
  const std::vector<FakeTensorMap>& tensor_maps() const;
  /// How many contexts each GPU has been asked for, by index.
  const std::vector<int>& contexts() const;
  /// Calls that depend on a current context while there was none.
  int calls_without_context() const;
  /// Segments made or mapped, by the GPU's number here.
  const std::vector<int>& memory_devices() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
  std::unique_ptr<DriverOverride> override_;
};

}  // namespace iridium::test
