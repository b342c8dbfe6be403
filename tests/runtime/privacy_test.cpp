// Other users stay out.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "runtime/rendezvous.h"
#include "support/ranks.h"
#include "support/resources.h"

namespace iridium::test {
namespace {

constexpr uid_t stranger = 65534;

#define IR_NEEDS_ROOT() \
  if (::geteuid() != 0) GTEST_SKIP() << "only root can act as another user"

TEST(Privacy, TheDirectoryIsMadePrivate) {
  const ScopedRuntimeDirectory directory;
  std::filesystem::remove(directory.path());
  rendezvous_path(make_local_jobs(1)[0], "default");
  struct stat status = {};
  ASSERT_EQ(::stat(directory.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
}

TEST(Privacy, ADirectoryOpenToOthersIsRefused) {
  const ScopedRuntimeDirectory directory;
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  const auto jobs = make_local_jobs(2);
  const Error error = expect_error(Errc::permission, [&] { Context context(jobs[0]); });
  EXPECT_NE(std::string(error.what()).find("has mode 0755"), std::string::npos) << error.what();
}

TEST(Privacy, ALinkInPlaceOfTheDirectoryIsRefused) {
  const ScopedRuntimeDirectory directory;
  const std::string link = directory.path() + "/link";
  ASSERT_EQ(::symlink("/tmp", link.c_str()), 0);
  ::setenv("IRIDIUM_RUNTIME_DIR", link.c_str(), 1);
  expect_error(Errc::permission, [] { Context context(make_local_jobs(2)[0]); });
}

TEST(Privacy, APathTooLongForASocketIsRefused) {
  const ScopedRuntimeDirectory directory;
  const std::string deep = directory.path() + "/" + std::string(100, 'x');
  ::setenv("IRIDIUM_RUNTIME_DIR", deep.c_str(), 1);
  const Error error =
      expect_error(Errc::invalid_argument, [] { Context context(make_local_jobs(2)[0]); });
  EXPECT_NE(std::string(error.what()).find("the limit is 107"), std::string::npos) << error.what();
}

TEST(Privacy, AnotherUsersDirectoryIsRefused) {
  IR_NEEDS_ROOT();
  const ScopedRuntimeDirectory directory;
  ASSERT_EQ(::chown(directory.path().c_str(), stranger, stranger), 0);
  const Error error =
      expect_error(Errc::permission, [] { Context context(make_local_jobs(2)[0]); });
  EXPECT_NE(std::string(error.what()).find("belongs to user 65534"), std::string::npos)
      << error.what();
}

sockaddr_un relative_address(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string file = std::filesystem::path(path).filename();
  std::memcpy(address.sun_path, file.data(), file.size());
  return address;
}

/// Runs `body` in a child inside `directory`; it returns the child's exit status.
template <class Body>
pid_t start_child(const std::string& directory, Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::chdir(directory.c_str()) == 0 ? body() : 99);
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

TEST(Privacy, AnotherUsersSocketIsRefused) {
  IR_NEEDS_ROOT();
  const ScopedRuntimeDirectory directory;
  const auto jobs = make_local_jobs(2);
  const sockaddr_un address = relative_address(rendezvous_path(jobs[1], "default"));
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  // The kernel reports as owner whoever called listen().
  const pid_t child = start_child(directory.path(), [&] {
    const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return 1;
    if (::setuid(stranger) != 0 || ::listen(listener, 8) != 0) return 2;
    if (::write(ready[1], "r", 1) != 1) return 3;
    ::alarm(30);
    ::pause();
    return 0;
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const Error error = expect_error(Errc::permission, [&] { Context context(jobs[1]); });
  EXPECT_NE(std::string(error.what()).find("belongs to user 65534"), std::string::npos)
      << error.what();
  ::kill(child, SIGKILL);
  wait_for(child);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(Privacy, AnotherUserIsTurnedAwayAtTheRendezvous) {
  IR_NEEDS_ROOT();
  const ScopedRuntimeDirectory directory;
  const auto jobs = make_local_jobs(2);
  const std::string path = rendezvous_path(jobs[0], "default");
  const sockaddr_un address = relative_address(path);
  std::thread leader([&] {
    Context context(jobs[0]);
    context.barrier();
  });
  while (::chmod(path.c_str(), 0777) != 0) std::this_thread::yield();
  ASSERT_EQ(::chmod(directory.path().c_str(), 0777), 0);
  // Opening the directory and the socket to everyone leaves the check of the peer's user alone in
  // the way.
  const pid_t child = start_child(directory.path(), [&] {
    if (::setuid(stranger) != 0) return 1;
    const int connection = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return 2;
    ::alarm(30);
    char byte = 0;
    return ::read(connection, &byte, 1) <= 0 ? 0 : 3;
  });
  EXPECT_EQ(wait_for(child), 0) << "the stranger's connection is closed without a word";
  ASSERT_EQ(::chmod(directory.path().c_str(), 0700), 0);
  Context context(jobs[1]);
  context.barrier();
  leader.join();
}

}  // namespace
}  // namespace iridium::test
