#include "cli/mps_daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include "cli/rank_environment.h"
#include "cli/rank_process.h"
#include "iridium/errors.h"

namespace iridium::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* control_program = "nvidia-cuda-mps-control";
constexpr std::chrono::milliseconds step{5};
constexpr std::chrono::milliseconds time_for_number{1'000};
constexpr int milliseconds_after_kill = 2'000;

std::string variable_or(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

/// The address of the control socket in `directory`, unless it is too long for one.
std::optional<sockaddr_un> control_address(const std::string& directory) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = directory + "/control";
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

bool is_listening(const std::string& directory) {
  const auto address = control_address(directory);
  if (!address) return false;
  const Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto* generic = reinterpret_cast<const sockaddr*>(&*address);
  // A full queue is one that somebody listens to as well.
  return ::connect(socket.number(), generic, sizeof *address) == 0 || errno == EAGAIN;
}

std::string make_private_directory() {
  std::string path = variable_or("TMPDIR", "/tmp") + "/iridium-mps-XXXXXX";
  // The longest name the daemon puts there.
  if (!control_address(path + "_privileged"))
    throw Error(Errc::system, fmt::format("the path of a socket in {} is too long", path));
  if (::mkdtemp(path.data()) == nullptr) throw_system_error("cannot make the directory " + path);
  return path;
}

Descriptor open_file(const std::string& path, int flags) {
  Descriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0600));
  if (!file.is_open()) throw_system_error("cannot open " + path);
  return file;
}

std::string first_line(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

/// A descriptor of the process whose number the daemon wrote into `directory`.
Descriptor open_daemon_process(const std::string& directory) {
  pid_t process = 0;
  std::ifstream file(directory + "/" + control_program + ".pid");
  if (!(file >> process) || process <= 1) return {};
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
}

std::vector<std::string> control_environment(const MpsDaemon& daemon) {
  EnvironmentChanges changes;
  for (const auto& [name, value] : daemon.environment()) changes[name] = value;
  // The daemon numbers the GPUs it sees anew: its clients' numbers mean the same only if it sees
  // all. Names of GPUs mean the same everywhere, and a part of a GPU has to be named.
  const std::string visible = variable_or("CUDA_VISIBLE_DEVICES", "");
  if (!visible.starts_with("GPU-") && !visible.starts_with("MIG-"))
    changes["CUDA_VISIBLE_DEVICES"] = std::nullopt;
  return changed_environment(current_environment(), changes);
}

bool has_failed(pid_t process, ProcessEnd& end) {
  return has_ended(process, end) && !end.is_success();
}

void kill_and_reap(pid_t process) noexcept {
  ::kill(-process, SIGKILL);
  ::waitpid(process, nullptr, 0);
}

}  // namespace

int gpus_of_job(std::string_view backend, std::span<const BackendInfo> backends) {
  const bool is_automatic = backend.empty() || backend == "auto";
  const auto used = std::ranges::find_if(backends, [&](const BackendInfo& info) {
    return info.available && (is_automatic || backend == name(info.kind));
  });
  const bool is_cuda = used != backends.end() && used->kind == BackendKind::cuda;
  return is_cuda ? static_cast<int>(used->usable_devices().size()) : 0;
}

bool needs_mps(std::string_view mode, int ranks, int gpus) {
  if (mode == "auto") return gpus > 0 && ranks > gpus;
  return mode == "on";
}

bool InheritedDaemon::serves_us() const {
  return owner == ::geteuid() || owner == 0;
}

std::string InheritedDaemon::owner_name() const {
  const passwd* entry = ::getpwuid(owner);
  return entry != nullptr ? entry->pw_name : std::to_string(owner);
}

std::string mps_pipe_directory() {
  return variable_or("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps");
}

std::optional<InheritedDaemon> find_inherited_daemon(const std::string& directory) {
  struct stat status = {};
  if (::stat((directory + "/control").c_str(), &status) != 0) return std::nullopt;
  if (!is_listening(directory)) return std::nullopt;
  return InheritedDaemon{.directory = directory, .owner = status.st_uid};
}

MpsDaemon::MpsDaemon(const SignalSource& signals, const MpsPatience& patience)
    : MpsDaemon(signals, patience, make_private_directory()) {
  // From here on the destructor runs also when this throws.
  const Descriptor input = open_file("/dev/null", O_RDONLY);
  const Descriptor output = open_file(directory_ + "/output", O_WRONLY | O_CREAT);
  starter_ = start_control({"-d"}, input.number(), output.number());
  wait_until_it_listens();
}

MpsDaemon::MpsDaemon(const SignalSource& signals, const MpsPatience& patience,
                     std::string directory)
    : signals_(signals), patience_(patience), directory_(std::move(directory)) {}

MpsDaemon::~MpsDaemon() {
  if (!listens_ || !quits()) kill_it();
  if (starter_ > 0) kill_and_reap(starter_);
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::vector<std::pair<std::string, std::string>> MpsDaemon::environment() const {
  return {{"CUDA_MPS_PIPE_DIRECTORY", directory_}, {"CUDA_MPS_LOG_DIRECTORY", directory_}};
}

pid_t MpsDaemon::start_control(const std::vector<std::string>& arguments, int input,
                               int output) const {
  std::vector<std::string> command = {control_program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const StartedProcess started = start_process({
      .command = command,
      .environment = control_environment(*this),
      .input = input,
      .output = output,
      .error = output,
      .signals = signals_,
  });
  if (started.failure == 0) return started.process;
  throw Error(Errc::system, fmt::format("cannot start {}: {}", control_program,
                                        std::generic_category().message(started.failure)));
}

void MpsDaemon::wait_until_it_listens() {
  const auto deadline = Clock::now() + patience_.start;
  for (;; std::this_thread::sleep_for(step)) {
    listens_ = is_listening(directory_);
    if (!process_.is_open()) process_ = open_daemon_process(directory_);
    if (listens_) return;
    throw_if_starter_failed();
    if (signals_.has_terminating()) throw Error(Errc::system, "a signal ends the run");
    if (Clock::now() < deadline) continue;
    const std::chrono::duration<double> seconds = patience_.start;
    throw Error(Errc::system, fmt::format("{} -d made no daemon that listens within {} s",
                                          control_program, seconds.count()));
  }
}

void MpsDaemon::throw_if_starter_failed() const {
  ProcessEnd end;
  if (!has_failed(starter_, end)) return;
  const std::string said = first_line(directory_ + "/output");
  throw Error(Errc::system, fmt::format("{} -d {}{}{}", control_program, end.describe(),
                                        said.empty() ? "" : ": ", said));
}

bool MpsDaemon::quits() const try {
  if (has_gone()) return true;
  Pipe input = make_pipe();
  constexpr std::string_view request = "quit\n";
  if (::write(input.write_end.number(), request.data(), request.size()) != std::ssize(request))
    return false;
  input.write_end.reset();
  const Descriptor output = open_file("/dev/null", O_WRONLY);
  const pid_t messenger = start_control({}, input.read_end.number(), output.number());
  const auto deadline = Clock::now() + patience_.quit;
  // Who asks the launcher to end now does not want to wait for the daemon either.
  while (!has_gone() && !signals_.has_terminating() && Clock::now() < deadline)
    std::this_thread::sleep_for(step);
  const bool has_quit = has_gone();
  kill_and_reap(messenger);
  return has_quit;
} catch (const std::exception&) {
  return false;
}

bool MpsDaemon::has_gone() const {
  if (!process_.is_open()) return !is_listening(directory_);
  pollfd polled = {process_.number(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1;
}

void MpsDaemon::kill_it() noexcept try {
  // A daemon leaves the starter's group before it writes its number. One that takes longer for
  // that than this is left alone.
  const auto deadline = Clock::now() + time_for_number;
  for (ProcessEnd end;; std::this_thread::sleep_for(step)) {
    if (!process_.is_open()) process_ = open_daemon_process(directory_);
    if (process_.is_open()) break;
    if (starter_ <= 0 || has_failed(starter_, end) || Clock::now() >= deadline) return;
  }
  ::syscall(SYS_pidfd_send_signal, process_.number(), SIGKILL, nullptr, 0);
  pollfd polled = {process_.number(), POLLIN, 0};
  ::poll(&polled, 1, milliseconds_after_kill);
} catch (const std::exception&) {
  // Nobody is there to hear it.
}

}  // namespace iridium::cli
