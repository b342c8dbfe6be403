// Discovery and links, on machines that are not there.
#include "backend/cuda/gpu.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#include "backend/backend.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/fake_driver.h"
#include "iridium/errors.h"
#include "support/resources.h"

namespace iridium::test {
namespace {

Link link_between(int a, int b) {
  const std::vector<Gpu> gpus = visible_gpus();
  return gpu_link(gpus[static_cast<std::size_t>(a)], fake_uuid(b), gpus);
}

TEST(GpuLinks, AreWhatDriverAndNvmlSay) {
  FakeMachine machine(FakeMachine::gpus(5));
  machine.link(0, 2, Link::pcie_atomics);
  machine.link(0, 3, Link::pcie);
  machine.link(0, 4, Link::none);
  EXPECT_EQ(link_between(0, 0), Link::shared);
  EXPECT_EQ(link_between(0, 1), Link::nvlink);
  EXPECT_EQ(link_between(1, 0), Link::nvlink);
  EXPECT_EQ(link_between(0, 2), Link::pcie_atomics);
  EXPECT_EQ(link_between(3, 0), Link::pcie);
  EXPECT_EQ(link_between(0, 4), Link::none);
}

TEST(GpuLinks, OfHiddenGpusAreWhatNvmlSays) {
  std::vector<FakeGpu> gpus = FakeMachine::gpus(5);
  for (const std::size_t hidden : {1u, 2u, 3u, 4u}) gpus[hidden].is_visible = false;
  FakeMachine machine(gpus);
  machine.link(0, 2, Link::pcie_atomics);
  machine.link(0, 3, Link::pcie);
  machine.link(0, 4, Link::none);
  ASSERT_EQ(visible_gpus().size(), 1u);
  EXPECT_EQ(link_between(0, 1), Link::nvlink);
  EXPECT_EQ(link_between(0, 2), Link::pcie_atomics);
  EXPECT_EQ(link_between(0, 3), Link::pcie);
  EXPECT_EQ(link_between(0, 4), Link::none);
}

TEST(GpuLinks, WithoutNvmlNothingBetterIsClaimedThanTheDriverSays) {
  std::vector<FakeGpu> gpus = FakeMachine::gpus(3);
  gpus[2].is_visible = false;
  FakeMachine machine(gpus);
  machine.remove_nvml();
  EXPECT_EQ(link_between(0, 1), Link::pcie_atomics);
  EXPECT_EQ(link_between(0, 2), Link::pcie);
}

TEST(BuildTargets, RunOnWhatTheyAreFor) {
  EXPECT_TRUE(runs_on("90a", 9, 0));
  EXPECT_FALSE(runs_on("90a", 8, 0));
  EXPECT_FALSE(runs_on("90a", 10, 0));
  EXPECT_FALSE(runs_on("90a", 9, 1));
  EXPECT_TRUE(runs_on("80-real", 8, 0));
  EXPECT_TRUE(runs_on("80-real", 8, 6));
  EXPECT_FALSE(runs_on("80-real", 9, 0));
  EXPECT_FALSE(runs_on("86-real", 8, 0));
  EXPECT_TRUE(runs_on("80", 9, 0));
  EXPECT_TRUE(runs_on("80-virtual", 12, 0));
  EXPECT_FALSE(runs_on("100", 9, 0));
  constexpr const char* portable = "80-real,86-real,89-real,90a-real,100,120";
  for (const auto& [major, minor] : {std::pair(8, 0),
                                     {8, 6},
                                     {8, 9},
                                     {9, 0},
                                     {10, 0},
                                     {10, 3},
                                     {11, 0},
                                     {12, 0},
                                     {12, 1},
                                     {13, 0}})
    EXPECT_TRUE(runs_on(portable, major, minor)) << major << '.' << minor;
  EXPECT_FALSE(runs_on(portable, 7, 5));
}

TEST(GpuObjections, SayWhatIsMissing) {
  const auto objection = [](const FakeGpu& gpu, Placement placement) {
    FakeMachine machine({gpu});
    return object_to_gpu(visible_gpus().front(), placement);
  };
  EXPECT_EQ(objection({}, Placement::device), "");
  EXPECT_NE(objection({.major = 3}, Placement::device).find("no code for compute capability 3.0"),
            std::string::npos);
  EXPECT_NE(objection({.name = "NVIDIA H100 80GB HBM3 MIG 1g.10gb"}, Placement::device).find("MIG"),
            std::string::npos);
  const FakeGpu without_numa = {
      .attributes = {{CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0}}};
  EXPECT_EQ(objection(without_numa, Placement::device), "");
  EXPECT_NE(objection(without_numa, Placement::host).find("host memory"), std::string::npos);
}

TEST(CudaAvailabilityOfFakes, TellsWhyThereIsNone) {
  {
    FakeMachine machine({FakeGpu{.major = 3}});
    EXPECT_NE(why_no_cuda().find("no code for compute capability 3.0"), std::string::npos)
        << why_no_cuda();
  }
  {
    FakeMachine machine(FakeMachine::gpus(1));
    machine.fail("cuInit", CUDA_ERROR_SYSTEM_NOT_READY);
    EXPECT_NE(why_no_cuda().find("fabric manager"), std::string::npos) << why_no_cuda();
  }
  FakeMachine none({});
  EXPECT_EQ(why_no_cuda(), "the driver finds no GPU");
}

TEST(CudaAvailabilityOfFakes, OneUsableGpuIsEnough) {
  std::vector<FakeGpu> gpus = FakeMachine::gpus(2);
  gpus[0].major = 3;
  FakeMachine machine(gpus);
  EXPECT_EQ(why_no_cuda(), "");
  const BackendInfo info = describe_cuda_backend();
  EXPECT_TRUE(info.available);
  ASSERT_EQ(info.devices.size(), 2u);
  EXPECT_NE(info.devices[0].objection.find("no code for compute capability 3.0"),
            std::string::npos);
  EXPECT_EQ(info.devices[1].objection, "");
  // What it can do is what the usable one can.
  ASSERT_FALSE(info.capabilities.empty());
  EXPECT_TRUE(info.capabilities[0].available) << info.capabilities[0].detail;
}

TEST(CudaAvailabilityOfFakes, MigInstancesAndGpusWithoutVirtualMemoryAreNotUsable) {
  std::vector<FakeGpu> gpus = FakeMachine::gpus(4);
  gpus[1].name = "NVIDIA H100 80GB HBM3 MIG 1g.10gb";
  gpus[2].attributes = {{CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0}};
  gpus[3].name = "NVIDIA H200";
  FakeMachine machine(gpus);
  const BackendInfo info = describe_cuda_backend();
  EXPECT_EQ(info.devices.size(), 4u);
  const std::vector<DeviceInfo> usable = info.usable_devices();
  ASSERT_EQ(usable.size(), 2u);
  EXPECT_EQ(usable[0].name, "NVIDIA H100");
  EXPECT_EQ(usable[1].name, "NVIDIA H200");
}

TEST(CudaAvailabilityOfFakes, AskingMakesNoContext) {
  FakeMachine machine(FakeMachine::gpus(8));
  EXPECT_TRUE(describe_cuda_backend().available);
  EXPECT_EQ(machine.contexts(), std::vector<int>(8, 0));
}

/// A rank warns once per process, so each case is tried in a process of its own.
class CpuFallback : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  /// On a machine that has `file` alone.
  [[noreturn]] static void make_two(BackendRequest request, const std::string& file) {
    {
      const TemporaryDirectory root;
      root.plant(file, "");
      request.machine_root = root.path();
      for (int i = 0; i < 2; ++i)
        if (make_backend(request)->kind() != BackendKind::host) std::exit(1);
    }
    std::fputs("end\n", stderr);
    std::exit(0);
  }
  [[noreturn]] static void make_two_on(std::vector<FakeGpu> gpus, const BackendRequest& request,
                                       const std::function<void(FakeMachine&)>& prepare,
                                       const std::string& file = "dev/null") {
    FakeMachine machine(std::move(gpus));
    prepare(machine);
    make_two(request, file);
  }
  /// All that is written, `reason` being a part of it.
  static std::string one_warning(const std::string& reason,
                                 const std::string& sign = "an NVIDIA driver is loaded") {
    return "^iridium\\[2\\] warn: runs on the CPUs although " + sign + ": [^\n]*" + reason +
           "[^\n]*\nend\n$";
  }
};

const BackendRequest rank_2 = {.rank = 2};

TEST_F(CpuFallback, WarnsOnceOfAFabricManagerThatDoesNotRun) {
  EXPECT_EXIT(make_two_on(FakeMachine::gpus(8), rank_2,
                          [](FakeMachine& machine) {
                            machine.fail("cuInit", CUDA_ERROR_SYSTEM_NOT_READY);
                          }),
              testing::ExitedWithCode(0), one_warning("fabric manager"));
}

TEST_F(CpuFallback, WarnsOnceOfAnOldDriver) {
  EXPECT_EXIT(make_two_on(FakeMachine::gpus(1), rank_2,
                          [](FakeMachine& machine) { machine.set_driver_version(12020); }),
              testing::ExitedWithCode(0), one_warning("the driver is too old: it knows CUDA 12.2"));
}

TEST_F(CpuFallback, WarnsOnceOfGpusThatCannotBeOpened) {
  // What the driver says where the devices' files are another user's.
  EXPECT_EXIT(
      make_two_on(
          FakeMachine::gpus(1), rank_2,
          [](FakeMachine& machine) { machine.fail("cuInit", CUDA_ERROR_NO_DEVICE); },
          "dev/nvidia0"),
      testing::ExitedWithCode(0),
      one_warning("the driver finds no GPU", "this machine has an NVIDIA GPU \\(/dev/nvidia0\\)"));
  EXPECT_EXIT(
      make_two_on(FakeMachine::gpus(1), rank_2,
                  [](FakeMachine& machine) { machine.fail("cuInit", CUDA_ERROR_NOT_PERMITTED); }),
      testing::ExitedWithCode(0), one_warning("not permitted"));
}

TEST_F(CpuFallback, WarnsOnceOfABuildWithoutCodeForTheGpu) {
  EXPECT_EXIT(make_two_on({FakeGpu{.major = 3}}, rank_2, [](FakeMachine&) {}),
              testing::ExitedWithCode(0), one_warning("no code for compute capability 3.0"));
}

TEST_F(CpuFallback, IsSilentWhereTheHostWasAskedFor) {
  EXPECT_EXIT(make_two_on({FakeGpu{.major = 3}}, {.kind = BackendKind::host}, [](FakeMachine&) {}),
              testing::ExitedWithCode(0), "^end\n$");
}

TEST_F(CpuFallback, WarnsOnceInAContainerWithoutTheDriver) {
  if (driver_is_loaded()) GTEST_SKIP() << "there is a driver";
  EXPECT_EXIT(make_two(rank_2, "proc/driver/nvidia/version"), testing::ExitedWithCode(0),
              one_warning("libcuda.so.1 cannot be loaded: [^\n]*--gpus all",
                          "this machine has an NVIDIA GPU \\(/proc/driver/nvidia/version\\)"));
}

TEST_F(CpuFallback, IsSilentWhereThereIsNoGpu) {
  // Images bring the driver's library along.
  EXPECT_EXIT(make_two_on({}, rank_2, [](FakeMachine&) {}), testing::ExitedWithCode(0), "^end\n$");
  EXPECT_EXIT(
      make_two_on({}, rank_2,
                  [](FakeMachine& machine) { machine.fail("cuInit", CUDA_ERROR_NO_DEVICE); }),
      testing::ExitedWithCode(0), "^end\n$");
  if (driver_is_loaded()) GTEST_SKIP() << "there is a driver";
  EXPECT_EXIT(make_two(rank_2, "dev/null"), testing::ExitedWithCode(0), "^end\n$");
}

}  // namespace
}  // namespace iridium::test
