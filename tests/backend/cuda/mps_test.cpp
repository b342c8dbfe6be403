#include "backend/cuda/mps.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/file_descriptor.h"

namespace iridium::test {
namespace {

constexpr uid_t somebody = 4711;

/// A directory with a socket in it, as NVIDIA's daemon has one.
class MpsDirectory : public ::testing::Test {
 protected:
  MpsDirectory() {
    std::string name = "/tmp/iridium-mps-test-XXXXXX";
    directory_ = ::mkdtemp(name.data());
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const std::string path = control();
    std::memcpy(address.sun_path, path.data(), path.size());
    listener_ = FileDescriptor(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
  }
  ~MpsDirectory() override { std::filesystem::remove_all(directory_); }

  std::string control() const { return directory_ + "/control"; }

  std::string directory_;
  FileDescriptor listener_;
};

TEST_F(MpsDirectory, OnesOwnDaemonIsFine) {
  EXPECT_EQ(object_to_mps_daemon(directory_, ::geteuid()), "");
}

TEST_F(MpsDirectory, AnotherUsersDaemonIsNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  ASSERT_EQ(::chown(control().c_str(), somebody, somebody), 0);
  const std::string objection = object_to_mps_daemon(directory_, somebody + 1);
  EXPECT_NE(objection.find("belongs to user 4711, not to user 4712"), std::string::npos)
      << objection;
  EXPECT_NE(objection.find(directory_), std::string::npos) << objection;
}

TEST_F(MpsDirectory, RootsDaemonServesEverybody) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  EXPECT_EQ(object_to_mps_daemon(directory_, somebody), "");
}

TEST_F(MpsDirectory, ADeadDaemonsSocketIsNoDaemon) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  ASSERT_EQ(::chown(control().c_str(), somebody, somebody), 0);
  listener_.reset();
  EXPECT_EQ(object_to_mps_daemon(directory_, somebody + 1), "");
}

TEST(MpsDaemonObjection, NoDirectoryIsNoDaemon) {
  EXPECT_EQ(object_to_mps_daemon("/nonexistent", somebody), "");
}

}  // namespace
}  // namespace iridium::test
