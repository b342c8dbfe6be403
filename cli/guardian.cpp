#include "cli/guardian.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "iridium/bootstrap.h"

namespace iridium::cli {
namespace {

constexpr pid_t forget_all = 0;

/// Nothing of the parent's stays open: others wait for the end of its pipes.
void leave_the_parent(int link) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  // Signals of the terminal are for the command.
  ::setpgid(0, 0);
  ::prctl(PR_SET_NAME, "iridium-guard");
  ::dup2(link, STDIN_FILENO);
  ::close_range(STDOUT_FILENO, ~0u, 0);
  ::open("/dev/null", O_WRONLY);
  ::dup2(STDOUT_FILENO, STDERR_FILENO);
}

/// In the child of a process that may have threads: nothing here allocates.
[[noreturn]] void guard(int link, const char* folder) {
  leave_the_parent(link);
  pid_t groups[max_ranks] = {};
  int count = 0;
  bool has_folder = *folder != '\0';
  while (true) {
    pid_t group = 0;
    const ssize_t bytes = ::read(STDIN_FILENO, &group, sizeof group);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes != ssize_t{sizeof group}) break;
    if (group == forget_all) {
      count = 0;
      has_folder = false;
    } else if (count < max_ranks) {
      groups[count++] = group;
    }
  }
  for (int i = 0; i < count; ++i) ::kill(-groups[i], SIGKILL);
  if (has_folder) ::execl("/bin/rm", "rm", "-rf", "--", folder, nullptr);
  ::_exit(0);
}

}  // namespace

Guardian::Guardian(const std::string& folder) {
  int ends[2] = {};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw_system_error("cannot make a pair of sockets");
  link_ = Descriptor(ends[0]);
  const Descriptor its_end(ends[1]);
  process_ = ::fork();
  if (process_ < 0) throw_system_error("cannot start a process that cleans up");
  if (process_ == 0) guard(its_end.number(), folder.c_str());
}

Guardian::~Guardian() {
  forget();
  link_.reset();
  ::waitpid(process_, nullptr, 0);
}

void Guardian::watch(pid_t group) const noexcept {
  [[maybe_unused]] const ssize_t sent = ::send(link_.number(), &group, sizeof group, MSG_NOSIGNAL);
}

void Guardian::forget() const noexcept {
  watch(forget_all);
}

}  // namespace iridium::cli
