// What shows that a machine has an NVIDIA GPU.
#include "backend/nvidia_sign.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/resources.h"

namespace iridium {
namespace {

const std::string pci = "sys/bus/pci/devices/";

void plant_pci(const test::TemporaryDirectory& root, const std::string& address,
               const std::string& vendor, const std::string& class_code) {
  root.plant(pci + address + "/vendor", vendor + "\n");
  root.plant(pci + address + "/class", class_code + "\n");
}

TEST(NvidiaSign, IsAFileOfTheDriver) {
  for (const char* file : {"dev/nvidia0", "dev/nvidiactl", "proc/driver/nvidia/version"}) {
    const test::TemporaryDirectory root;
    EXPECT_EQ(sign_of_nvidia_gpu(root.path()), "");
    root.plant(file, "");
    EXPECT_EQ(sign_of_nvidia_gpu(root.path()), std::string("/") + file);
  }
}

TEST(NvidiaSign, IsAPciDeviceAlsoWithoutADriver) {
  // VGA controllers and 3D controllers.
  for (const char* class_code : {"0x030000", "0x030200"}) {
    const test::TemporaryDirectory root;
    plant_pci(root, "0000:00:02.0", "0x8086", "0x030000");
    plant_pci(root, "0000:17:00.0", "0x10de", class_code);
    EXPECT_EQ(sign_of_nvidia_gpu(root.path()), "/" + pci + "0000:17:00.0") << class_code;
  }
}

TEST(NvidiaSign, IsNoOtherDevice) {
  const test::TemporaryDirectory root;
  plant_pci(root, "0000:00:02.0", "0x8086", "0x030000");
  plant_pci(root, "0000:17:00.1", "0x10de", "0x040300");
  plant_pci(root, "0000:18:00.0", "0x10de", "0x068000");
  root.plant(pci + "0000:19:00.0/vendor", "0x10de\n");
  root.plant(pci + "0000:20:00.0/class", "0x030000\n");
  root.plant("dev/nvram", "");
  EXPECT_EQ(sign_of_nvidia_gpu(root.path()), "");
}

TEST(NvidiaSign, IsNotLookedForWhereNothingCanBeRead) {
  EXPECT_EQ(sign_of_nvidia_gpu("/nonexistent"), "");
  const test::TemporaryDirectory root;
  root.plant("sys/bus/pci/devices", "a file");
  root.plant("dev", "a file");
  EXPECT_EQ(sign_of_nvidia_gpu(root.path()), "");
}

}  // namespace
}  // namespace iridium
