// A rank's backend on machines that are not there: contexts, peers and segments.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <optional>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/fake_driver.h"
#include "backend/cuda/gpu_place.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

/// A rank's backend, and the places of a job with a GPU per rank.
struct Rank {
  std::unique_ptr<Backend> backend;
  std::vector<std::string> places;

  Rank(int rank, int size, BackendRequest request = {}) {
    request.rank = rank;
    backend = make_cuda_backend(request);
    const GpuPlace mine = parse_gpu_place(backend->place());
    for (int peer = 0; peer < size; ++peer) {
      GpuPlace place = mine;
      if (peer != rank) {
        place.process = "process-" + std::to_string(peer);
        place.device = peer;
        place.uuid = fake_uuid(peer);
      }
      places.push_back(encode(place));
    }
  }
  void check(int rank) { backend->check_peers(rank, places); }
};

TEST(CudaBackendOfFakes, MakesAContextOnItsOwnGpuAlone) {
  FakeMachine machine(FakeMachine::gpus(8));
  Rank rank(5, 8);
  rank.check(5);
  EXPECT_EQ(rank.backend->device(), 5);
  const FileDescriptor segment = rank.backend->create_segment(std::size_t{2} << 20);
  const auto window = rank.backend->open_window(1, 8, std::size_t{2} << 20);
  for (int peer = 0; peer < 8; ++peer) window->map(peer, segment);
  EXPECT_EQ(machine.contexts(), (std::vector<int>{0, 0, 0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(machine.calls_without_context(), 0);
  EXPECT_EQ(machine.current(), nullptr);
  ASSERT_FALSE(machine.memory_devices().empty());
  for (const int device : machine.memory_devices()) EXPECT_EQ(device, 5);
}

TEST(CudaBackendOfFakes, LeavesAContextThatIsCurrent) {
  FakeMachine machine(FakeMachine::gpus(2));
  auto* const users = machine.make_current(1);
  Rank rank(0, 1);
  EXPECT_EQ(rank.backend->device(), 1);
  rank.backend->check_heap(1, 1);
  const FileDescriptor segment = rank.backend->create_segment(std::size_t{2} << 20);
  EXPECT_EQ(machine.current(), users);
  EXPECT_EQ(machine.contexts(), (std::vector<int>{0, 1}));
}

TEST(CudaBackendOfFakes, KnowsItsLinks) {
  FakeMachine machine(FakeMachine::gpus(4));
  machine.link(0, 2, Link::pcie);
  Rank rank(0, 4);
  rank.check(0);
  EXPECT_EQ(rank.backend->link(0), Link::shared);
  EXPECT_EQ(rank.backend->link(1), Link::nvlink);
  EXPECT_EQ(rank.backend->link(2), Link::pcie);
}

TEST(CudaBackendOfFakes, TakesNoBetterLinkForGrantedThanItIsTold) {
  FakeMachine machine(FakeMachine::gpus(3));
  machine.link(0, 2, Link::pcie);
  Rank rank(0, 3, {.link = Link::pcie_atomics});
  rank.check(0);
  EXPECT_EQ(rank.backend->link(0), Link::shared);
  EXPECT_EQ(rank.backend->link(1), Link::pcie_atomics);
  EXPECT_EQ(rank.backend->link(2), Link::pcie);
}

TEST(CudaBackendOfFakes, WithoutPeerAccessOnlyHostMemoryIsLeft) {
  FakeMachine machine(FakeMachine::gpus(2));
  machine.link(0, 1, Link::none);
  Rank on_device(0, 2);
  const Error error = expect_error(Errc::unsupported, [&] { on_device.check(0); });
  EXPECT_EQ(error.ranks(), std::vector<int>{1});
  EXPECT_NE(std::string(error.what()).find("IRIDIUM_PLACEMENT=host"), std::string::npos)
      << error.what();
  Rank on_host(0, 2, {.placement = Placement::host});
  on_host.check(0);
  EXPECT_EQ(on_host.backend->link(1), Link::pcie_atomics);
}

TEST(CudaBackendOfFakes, HostMemoryOfSeveralGpusHasTheAtomicsOfTheGpu) {
  std::vector<FakeGpu> gpus = FakeMachine::gpus(2);
  gpus[0].attributes[CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED] = 0;
  FakeMachine machine(gpus);
  Rank rank(0, 2, {.placement = Placement::host});
  rank.check(0);
  EXPECT_EQ(rank.backend->link(1), Link::pcie);
}

TEST(CudaBackendOfFakes, ASegmentThatCannotBeMappedNamesWhatMayHideTheGpu) {
  for (const char* call : {"cuMemImportFromShareableHandle", "cuMemMap", "cuMemSetAccess"}) {
    SCOPED_TRACE(call);
    FakeMachine machine(FakeMachine::gpus(2));
    Rank rank(0, 2);
    rank.check(0);
    const FileDescriptor segment = rank.backend->create_segment(std::size_t{2} << 20);
    const auto window = rank.backend->open_window(1, 2, std::size_t{2} << 20);
    machine.fail(call, CUDA_ERROR_INVALID_DEVICE);
    const Error error = expect_error(Errc::invalid_argument, [&] { window->map(1, segment); });
    const std::string text = error.what();
    EXPECT_NE(text.find("--gpus-per-task"), std::string::npos) << text;
    EXPECT_NE(text.find("IRIDIUM_PLACEMENT=host"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
  }
}

TEST(CudaBackendOfFakes, HostMemoryThatCannotBeMappedHintsAtNoGpu) {
  FakeMachine machine(FakeMachine::gpus(2));
  Rank rank(0, 2, {.placement = Placement::host});
  rank.check(0);
  const FileDescriptor segment = rank.backend->create_segment(std::size_t{2} << 20);
  const auto window = rank.backend->open_window(1, 2, std::size_t{2} << 20);
  machine.fail("cuMemMap", CUDA_ERROR_INVALID_VALUE);
  const Error error = expect_error(Errc::invalid_argument, [&] { window->map(1, segment); });
  EXPECT_EQ(std::string(error.what()).find("--gpus-per-task"), std::string::npos) << error.what();
}

/// What a rank on GPU 0, whose kernels reach host memory or do not, says of memory.
std::string objection(const std::optional<FakeMemory>& memory, bool reaches_pageable_memory) {
  std::vector<FakeGpu> gpus = FakeMachine::gpus(3);
  gpus[0].attributes[CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS] = reaches_pageable_memory ? 1 : 0;
  FakeMachine machine(gpus);
  const Rank rank(0, 1);
  const int somewhere = 0;
  if (memory) machine.add_memory(&somewhere, *memory);
  const std::string text = rank.backend->object_to_memory(&somewhere);
  EXPECT_EQ(machine.current(), nullptr);
  EXPECT_EQ(machine.contexts(), (std::vector<int>{1, 0, 0}));
  return text;
}

TEST(CudaBackendOfFakes, ObjectsToMemoryThatItsKernelsDoNotReach) {
  for (const bool reaches_pageable_memory : {false, true}) {
    const std::string text =
        objection(FakeMemory{.device = 2, .is_reached = false}, reaches_pageable_memory);
    EXPECT_NE(text.find("memory of GPU 2"), std::string::npos) << text;
    EXPECT_NE(text.find("kernels on GPU 0"), std::string::npos) << text;
    EXPECT_NE(text.find("cudaDeviceEnablePeerAccess"), std::string::npos) << text;
  }
  const std::string text = objection(std::nullopt, false);
  EXPECT_NE(text.find("memory of the host"), std::string::npos) << text;
  EXPECT_NE(text.find("cudaHostRegister"), std::string::npos) << text;
}

TEST(CudaBackendOfFakes, ObjectsToNoMemoryThatItsKernelsMayReach) {
  EXPECT_EQ(objection(std::nullopt, true), "") << "the GPU reaches all host memory";
  EXPECT_EQ(objection(FakeMemory{}, false), "") << "its own";
  EXPECT_EQ(objection(FakeMemory{.device = 2}, false), "") << "mapped, or with peer access";
  EXPECT_EQ(
      objection(FakeMemory{.type = CU_MEMORYTYPE_HOST, .device = 2, .is_reached = false}, false),
      "")
      << "pinned by another GPU's context";
  EXPECT_EQ(objection(FakeMemory{.device = 2, .is_managed = true, .is_reached = false}, false), "")
      << "managed";
}

TEST(CudaBackendOfFakes, StreamsOfOtherContextsAreRefused) {
  FakeMachine machine(FakeMachine::gpus(2));
  Rank rank(0, 1);
  const auto refusal = [&](int device) {
    const Error error = expect_error(
        Errc::invalid_argument, [&] { rank.backend->borrow_stream(machine.make_stream(device)); });
    EXPECT_EQ(machine.current(), nullptr);
    EXPECT_EQ(machine.contexts(), (std::vector<int>{1, 0}));
    return std::string(error.what());
  };
  EXPECT_NE(refusal(0).find("another context of GPU 0"), std::string::npos) << refusal(0);
  EXPECT_NE(refusal(0).find("green context"), std::string::npos) << refusal(0);
  EXPECT_NE(refusal(1).find("a context of GPU 1"), std::string::npos) << refusal(1);
}

TEST(CudaBackendOfFakes, TheDefaultStreamOfAnotherContextIsRefused) {
  FakeMachine machine(FakeMachine::gpus(2));
  Rank rank(0, 1);
  auto* const users = machine.make_current(1);
  for (void* stream : {static_cast<void*>(nullptr), static_cast<void*>(cudaStreamLegacy)}) {
    const Error error =
        expect_error(Errc::invalid_argument, [&] { rank.backend->borrow_stream(stream); });
    EXPECT_NE(std::string(error.what()).find("a context of GPU 1"), std::string::npos)
        << error.what();
    EXPECT_EQ(machine.current(), users);
  }
}

TEST(CudaBackendOfFakes, AContextThatCannotBeMadeIsAnError) {
  FakeMachine machine(FakeMachine::gpus(2));
  machine.fail("cuDevicePrimaryCtxRetain", CUDA_ERROR_DEVICE_UNAVAILABLE);
  const Error error = expect_error(Errc::system, [] { make_cuda_backend({.rank = 1}); });
  EXPECT_NE(std::string(error.what()).find("exclusive"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace iridium::test
