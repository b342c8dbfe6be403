#include "cli/rank_process.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/descriptor.h"

namespace iridium::cli {
namespace {

std::vector<char*> null_terminated(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

bool prepare_child(const ProcessPlan& plan, pid_t launcher) {
  if (::setpgid(0, 0) != 0) return false;
  if (plan.guardian != nullptr) plan.guardian->watch(::getpid());
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
  // A launcher that died before the call above sends no signal any more.
  if (::getppid() != launcher) ::_exit(128 + SIGKILL);
  if (::dup2(plan.input, STDIN_FILENO) < 0) return false;
  if (::dup2(plan.output, STDOUT_FILENO) < 0) return false;
  if (::dup2(plan.error, STDERR_FILENO) < 0) return false;
  plan.signals.restore();
  return true;
}

}  // namespace

StartedProcess start_process(const ProcessPlan& plan) {
  const std::vector<char*> arguments = null_terminated(plan.command);
  const std::vector<char*> environment = null_terminated(plan.environment);
  Pipe report = make_pipe();
  const pid_t launcher = ::getpid();
  const pid_t process = ::fork();
  if (process < 0) return {.failure = errno};
  if (process == 0) {
    if (prepare_child(plan, launcher))
      ::execvpe(arguments[0], arguments.data(), environment.data());
    const int failure = errno;
    [[maybe_unused]] const ssize_t sent =
        ::write(report.write_end.number(), &failure, sizeof failure);
    ::_exit(127);
  }
  report.write_end.reset();
  // The write end closes on exec: no bytes mean that the program runs.
  int failure = 0;
  if (::read(report.read_end.number(), &failure, sizeof failure) != ssize_t{sizeof failure})
    return {.process = process};
  ::waitpid(process, nullptr, 0);
  return {.failure = failure};
}

std::string ProcessEnd::describe() const {
  if (!by_signal) return fmt::format("exited with status {}", value);
  return fmt::format("was killed by signal {} ({})", value, ::strsignal(value));
}

bool has_ended(pid_t process, ProcessEnd& end) {
  siginfo_t info = {};
  if (::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
    throw_system_error(fmt::format("cannot wait for process {}", process));
  if (info.si_pid == 0) return false;
  end = {.by_signal = info.si_code != CLD_EXITED, .value = info.si_status};
  return true;
}

}  // namespace iridium::cli
