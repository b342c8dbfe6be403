#include "backend/cuda/fake_driver.h"

#include <algorithm>
#include <cstring>

namespace iridium::test {

struct FakeMachine::State {
  std::vector<FakeGpu> gpus;
  std::vector<int> visible;  ///< indices, by number
  std::map<std::pair<int, int>, Link> links;
  std::map<std::string, CUresult> failures;
  bool has_nvml = true;
  int version = CUDA_VERSION;
  std::vector<CUcontext> stack;  ///< the calling thread's contexts
  std::vector<int> contexts;
  int calls_without_context = 0;
  std::vector<int> memory_devices;
  std::map<CUdeviceptr, FakeMemory> memory;
  std::vector<FakeTensorMap> tensor_maps;

  Link link_between(int a, int b) const {
    const auto found = links.find({std::min(a, b), std::max(a, b)});
    return found == links.end() ? Link::nvlink : found->second;
  }
  const FakeGpu& gpu(CUdevice handle) const {
    return gpus[static_cast<std::size_t>(visible[static_cast<std::size_t>(handle)])];
  }
};

namespace {

FakeMachine::State* machine = nullptr;

/// Primary contexts are the odd ones, others the even ones, of the GPU with number n.
CUcontext context_of(int device, bool is_primary) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a name, never looked into
  return reinterpret_cast<CUcontext>(std::uintptr_t{16} * (static_cast<unsigned>(device) + 1) +
                                     (is_primary ? 1 : 0));
}
int device_of(CUcontext context) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(context) / 16) - 1;
}

CUresult status_of(const char* call) {
  const auto found = machine->failures.find(call);
  return found == machine->failures.end() ? CUDA_SUCCESS : found->second;
}
bool is_device(CUdevice handle) {
  return handle >= 0 && handle < static_cast<int>(machine->visible.size());
}

CUresult init(unsigned) {
  return status_of("cuInit");
}
CUresult version(int* value) {
  *value = machine->version;
  return status_of("cuDriverGetVersion");
}
CUresult device_count(int* count) {
  *count = static_cast<int>(machine->visible.size());
  return status_of("cuDeviceGetCount");
}
CUresult device_get(CUdevice* handle, int device) {
  *handle = device;
  return is_device(device) ? status_of("cuDeviceGet") : CUDA_ERROR_INVALID_DEVICE;
}
CUresult device_name(char* text, int length, CUdevice handle) {
  std::strncpy(text, machine->gpu(handle).name.c_str(), static_cast<std::size_t>(length));
  return status_of("cuDeviceGetName");
}
CUresult device_uuid(CUuuid* uuid, CUdevice handle) {
  *uuid = {};
  uuid->bytes[15] = static_cast<char>(machine->gpu(handle).id);
  return status_of("cuDeviceGetUuid");
}
CUresult device_memory(std::size_t* bytes, CUdevice) {
  *bytes = std::size_t{80} << 30;
  return status_of("cuDeviceTotalMem");
}
CUresult device_attribute(int* value, CUdevice_attribute which, CUdevice handle) {
  const FakeGpu& gpu = machine->gpu(handle);
  const auto found = gpu.attributes.find(which);
  *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? gpu.major
           : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? gpu.minor
           : found != gpu.attributes.end()                         ? found->second
                                                                   : 1;
  return status_of("cuDeviceGetAttribute");
}
Link link_of(CUdevice from, CUdevice to) {
  return machine->link_between(machine->visible[static_cast<std::size_t>(from)],
                               machine->visible[static_cast<std::size_t>(to)]);
}
CUresult can_access_peer(int* possible, CUdevice from, CUdevice to) {
  *possible = link_of(from, to) != Link::none ? 1 : 0;
  return status_of("cuDeviceCanAccessPeer");
}
CUresult peer_attribute(int* value, CUdevice_P2PAttribute, CUdevice from, CUdevice to) {
  *value = has_native_atomics(link_of(from, to)) ? 1 : 0;
  return status_of("cuDeviceGetP2PAttribute");
}

CUresult primary_context(CUcontext* context, CUdevice handle) {
  ++machine->contexts[static_cast<std::size_t>(machine->visible[static_cast<std::size_t>(handle)])];
  *context = context_of(handle, true);
  return status_of("cuDevicePrimaryCtxRetain");
}
CUresult context_get(CUcontext* context) {
  *context = machine->stack.empty() ? nullptr : machine->stack.back();
  return CUDA_SUCCESS;
}
CUresult context_device(CUdevice* handle) {
  if (machine->stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *handle = device_of(machine->stack.back());
  return CUDA_SUCCESS;
}
CUresult context_push(CUcontext context) {
  const CUresult status = status_of("cuCtxPushCurrent");
  if (status == CUDA_SUCCESS) machine->stack.push_back(context);
  return status;
}
CUresult context_pop(CUcontext* context) {
  if (machine->stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = machine->stack.back();
  machine->stack.pop_back();
  return CUDA_SUCCESS;
}
CUresult exchange_capture_mode(CUstreamCaptureMode*) {
  // The driver makes GPU 0's primary context here where a thread has none.
  if (machine->stack.empty()) {
    ++machine->calls_without_context;
    ++machine->contexts[0];
  }
  return CUDA_SUCCESS;
}

/// Streams are named as their context.
CUresult stream_context(CUstream stream, CUcontext* context) {
  *context = reinterpret_cast<CUcontext>(stream);
  return CUDA_SUCCESS;
}

CUresult pointer_attribute(void* value, CUpointer_attribute which, CUdeviceptr address) {
  const auto found = machine->memory.find(address);
  if (found == machine->memory.end()) return CUDA_ERROR_INVALID_VALUE;
  const FakeMemory& memory = found->second;
  switch (which) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<CUmemorytype*>(value) = memory.type;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(value) = address;
      return memory.is_reached ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(value) = memory.device;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned int*>(value) = memory.is_managed ? 1 : 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

void note_memory() {
  machine->memory_devices.push_back(machine->stack.empty() ? -1 : device_of(machine->stack.back()));
}
CUresult mem_info(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{80} << 30;
  return CUDA_SUCCESS;
}
CUresult mem_create(CUmemGenericAllocationHandle* handle, std::size_t,
                    const CUmemAllocationProp* properties, unsigned long long) {
  *handle = 1;
  note_memory();
  if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
    machine->memory_devices.push_back(properties->location.id);
  return status_of("cuMemCreate");
}
CUresult mem_release(CUmemGenericAllocationHandle) {
  return CUDA_SUCCESS;
}
CUresult mem_export(void*, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
                    unsigned long long) {
  return status_of("cuMemExportToShareableHandle");
}
CUresult mem_import(CUmemGenericAllocationHandle* handle, void*, CUmemAllocationHandleType) {
  *handle = 1;
  return status_of("cuMemImportFromShareableHandle");
}
CUresult mem_granularity(std::size_t* bytes, const CUmemAllocationProp*,
                         CUmemAllocationGranularity_flags) {
  *bytes = std::size_t{2} << 20;
  return status_of("cuMemGetAllocationGranularity");
}
CUresult mem_reserve(CUdeviceptr* address, std::size_t, std::size_t, CUdeviceptr,
                     unsigned long long) {
  *address = CUdeviceptr{1} << 40;
  return status_of("cuMemAddressReserve");
}
CUresult mem_unreserve(CUdeviceptr, std::size_t) {
  return CUDA_SUCCESS;
}
CUresult mem_map(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle,
                 unsigned long long) {
  note_memory();
  return status_of("cuMemMap");
}
CUresult mem_unmap(CUdeviceptr, std::size_t) {
  return CUDA_SUCCESS;
}
CUresult mem_set_access(CUdeviceptr, std::size_t, const CUmemAccessDesc* access,
                        std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
      machine->memory_devices.push_back(access[i].location.id);
  return status_of("cuMemSetAccess");
}

CUresult encode_tensor_map(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t dimensions,
                           void* address, const cuuint64_t* sizes, const cuuint64_t* strides,
                           const cuuint32_t* box, const cuuint32_t*, CUtensorMapInterleave,
                           CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                           CUtensorMapFloatOOBfill) {
  map->opaque[0] = machine->tensor_maps.size();
  machine->tensor_maps.push_back({.type = type,
                                  .address = address,
                                  .sizes = {sizes, sizes + dimensions},
                                  .strides = {strides, strides + dimensions - 1},
                                  .box = {box, box + dimensions},
                                  .swizzle = swizzle});
  return status_of("cuTensorMapEncodeTiled");
}

int device_by_uuid(const char* uuid, Nvml::Device** device) {
  for (std::size_t i = 0; i < machine->gpus.size(); ++i)
    if (fake_uuid(machine->gpus[i].id) == uuid) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): a name, never looked into
      *device = reinterpret_cast<Nvml::Device*>(i + 1);
      return 0;
    }
  return 6;
}
int peer_status(Nvml::Device* from, Nvml::Device* to, Nvml::Capability capability, int* status) {
  const Link link =
      machine->link_between(static_cast<int>(reinterpret_cast<std::uintptr_t>(from)) - 1,
                            static_cast<int>(reinterpret_cast<std::uintptr_t>(to)) - 1);
  const bool has = capability == Nvml::has_nvlink    ? link == Link::nvlink
                   : capability == Nvml::has_atomics ? has_native_atomics(link)
                                                     : link != Link::none;
  *status = has ? 0 : 1;
  return 0;
}
const Nvml* nvml() {
  static const Nvml calls = {.device_by_uuid = device_by_uuid, .peer_status = peer_status};
  return machine->has_nvml ? &calls : nullptr;
}

const Driver& fake_calls() {
  static const Driver calls = {.init = init,
                               .version = version,
                               .device_count = device_count,
                               .device_get = device_get,
                               .device_name = device_name,
                               .device_uuid = device_uuid,
                               .device_memory = device_memory,
                               .device_attribute = device_attribute,
                               .can_access_peer = can_access_peer,
                               .peer_attribute = peer_attribute,
                               .nvml = nvml,
                               .primary_context = primary_context,
                               .context_get = context_get,
                               .context_device = context_device,
                               .context_push = context_push,
                               .context_pop = context_pop,
                               .exchange_capture_mode = exchange_capture_mode,
                               .stream_context = stream_context,
                               .stream_query = nullptr,
                               .event_query = nullptr,
                               .pointer_attribute = pointer_attribute,
                               .mem_info = mem_info,
                               .mem_create = mem_create,
                               .mem_release = mem_release,
                               .mem_export = mem_export,
                               .mem_import = mem_import,
                               .mem_granularity = mem_granularity,
                               .mem_reserve = mem_reserve,
                               .mem_unreserve = mem_unreserve,
                               .mem_map = mem_map,
                               .mem_unmap = mem_unmap,
                               .mem_set_access = mem_set_access,
                               .encode_tensor_map = encode_tensor_map};
  return calls;
}

}  // namespace

std::string fake_uuid(int id) {
  constexpr char digits[] = "0123456789abcdef";
  return std::string("GPU-00000000-0000-0000-0000-0000000000") + digits[id / 16] + digits[id % 16];
}

FakeMachine::FakeMachine(std::vector<FakeGpu> gpus) : state_(std::make_unique<State>()) {
  state_->contexts.resize(gpus.size());
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if (gpus[i].is_visible) state_->visible.push_back(static_cast<int>(i));
  state_->gpus = std::move(gpus);
  machine = state_.get();
  override_ = std::make_unique<DriverOverride>(fake_calls());
}
FakeMachine::~FakeMachine() {
  override_.reset();
  machine = nullptr;
}

std::vector<FakeGpu> FakeMachine::gpus(int count) {
  std::vector<FakeGpu> gpus(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) gpus[static_cast<std::size_t>(i)].id = i;
  return gpus;
}

void FakeMachine::link(int a, int b, Link link) {
  state_->links[{std::min(a, b), std::max(a, b)}] = link;
}
void FakeMachine::fail(const std::string& call, CUresult status) {
  state_->failures[call] = status;
}
void FakeMachine::set_driver_version(int version) {
  state_->version = version;
}
void FakeMachine::remove_nvml() {
  state_->has_nvml = false;
}
CUcontext FakeMachine::make_current(int device) {
  state_->stack.push_back(context_of(device, false));
  return state_->stack.back();
}
CUcontext FakeMachine::current() const {
  return state_->stack.empty() ? nullptr : state_->stack.back();
}
CUstream FakeMachine::make_stream(int device) {
  return reinterpret_cast<CUstream>(context_of(device, false));
}
void FakeMachine::add_memory(const void* address, const FakeMemory& memory) {
  state_->memory[reinterpret_cast<CUdeviceptr>(address)] = memory;
}
const std::vector<FakeTensorMap>& FakeMachine::tensor_maps() const {
  return state_->tensor_maps;
}
const std::vector<int>& FakeMachine::contexts() const {
  return state_->contexts;
}
int FakeMachine::calls_without_context() const {
  return state_->calls_without_context;
}
const std::vector<int>& FakeMachine::memory_devices() const {
  return state_->memory_devices;
}

}  // namespace iridium::test
