#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "backend/backend.h"
#include "support/ranks.h"
#include "support/resources.h"

namespace iridium {
namespace {

TEST(BackendRegistry, DescribesEveryBackendOnce) {
  std::set<BackendKind> kinds;
  for (const BackendInfo& info : describe_backends()) {
    EXPECT_TRUE(kinds.insert(info.kind).second) << name(info.kind);
    EXPECT_EQ(info.reason.empty(), info.available) << name(info.kind);
  }
  EXPECT_EQ(kinds, (std::set{BackendKind::host, BackendKind::cuda, BackendKind::hip}));
}

TEST(BackendRegistry, HasTheHostBackendAlways) {
  EXPECT_TRUE(describe_backends().back().available);
  EXPECT_EQ(describe_backends().back().kind, BackendKind::host);
  EXPECT_EQ(make_backend({.kind = BackendKind::host})->kind(), BackendKind::host);
}

TEST(BackendRegistry, ChoosesTheFirstThatIsAvailable) {
  for (const BackendInfo& info : describe_backends()) {
    if (!info.available) continue;
    EXPECT_EQ(make_backend({})->kind(), info.kind);
    return;
  }
  FAIL() << "no backend is available";
}

TEST(BackendRegistry, RefusesABackendThatIsOffWithTheReason) {
  for (const BackendInfo& info : describe_backends()) {
    if (info.available) continue;
    const Error error =
        test::expect_error(Errc::unsupported, [&] { make_backend({.kind = info.kind}); });
    const std::string message = error.what();
    EXPECT_NE(message.find(name(info.kind)), std::string::npos) << message;
    EXPECT_NE(message.find(info.reason), std::string::npos) << message;
  }
}

/// The first ranks of a process on a machine that has `file` alone.
[[noreturn]] void make_two_on_machine_with(const std::string& file) {
  {
    const test::TemporaryDirectory root;
    root.plant(file, "");
    for (int i = 0; i < 2; ++i) make_backend({.rank = 2, .machine_root = root.path()});
  }
  std::fputs("end\n", stderr);
  std::_Exit(0);
}

// A rank warns once per process, so each case is tried in a process of its own. Those with a driver
// are in the CUDA backend's tests.
TEST(BackendRegistry, WarnsOnceOfGpusThatNoDriverShows) {
  if (describe_backends().front().available) GTEST_SKIP() << "there is a GPU to use";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(make_two_on_machine_with("dev/nvidia0"), testing::ExitedWithCode(0),
              "^iridium\\[2\\] warn: runs on the CPUs although "
              "(this machine has an NVIDIA GPU \\(/dev/nvidia0\\)|an NVIDIA driver is loaded): "
              "[^\n]+ \\(--backend, [^\n]*\nend\n$");
}

TEST(BackendRegistry, IsSilentOnAMachineWithoutGpus) {
  if (describe_backends().front().available) GTEST_SKIP() << "there is a GPU to use";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(make_two_on_machine_with("dev/null"), testing::ExitedWithCode(0), "^end\n$");
}

}  // namespace
}  // namespace iridium
