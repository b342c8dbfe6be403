#include "cli/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "iridium/errors.h"

namespace iridium::cli {
namespace {

std::string error_text(int code) {
  return std::generic_category().message(code);
}

/// The status shells return for a program that cannot be started.
int start_failure_status(int code) {
  return code == ENOENT || code == ENOTDIR ? 127 : 126;
}

/// "8 ranks share 1 GPU: ", or nothing when they share none.
std::string sharing_text(int ranks, int gpus) {
  if (gpus == 0 || ranks <= gpus) return "";
  return fmt::format("{} ranks share {} {}: ", ranks, gpus, gpus == 1 ? "GPU" : "GPUs");
}

/// When a rank fails, the others get this long to say what they see of it before they are ended.
constexpr std::chrono::milliseconds time_to_speak{300};

}  // namespace

int Launcher::run() {
  start_mps();
  if (failed_status_) {
    close_job();
  } else if (signals_.has_terminating()) {
    receive_signals();
  } else {
    start_ranks();
  }
  while (!is_finished()) wait_for_events();
  mps_.reset();
  receive_signals();
  return status();
}

void Launcher::start_mps() {
  if (options_.mps == "off") return;
  const auto inherited = find_inherited_daemon(mps_pipe_directory());
  if (inherited && !inherited->serves_us()) {
    report(fmt::format("the MPS daemon in {} is not used: it belongs to {}", inherited->directory,
                       inherited->owner_name()));
    // Asking the driver for GPUs would wait for it.
    ::setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
  }
  const int count = gpus();
  if (failed_status_ || !needs_mps(options_.mps, options_.ranks, count)) return;
  if (inherited && inherited->serves_us()) return;
  try {
    mps_.emplace(signals_);
    report(sharing_text(options_.ranks, count) + "started a private MPS daemon");
  } catch (const Error& error) {
    if (signals_.has_terminating()) return;
    report(fmt::format("{}no MPS daemon: {}", sharing_text(options_.ranks, count), error.what()));
    report("ranks that share a GPU without MPS take turns: a barrier costs milliseconds");
  }
}

int Launcher::gpus() {
  const std::string backend = backend_of_ranks(options_);
  // Asking the driver takes a fraction of a second.
  if (options_.ranks == 1 || backend == "host") return 0;
  const std::vector<BackendInfo> backends = describe_backends();
  for (const BackendInfo& info : backends)
    if (!info.available && options_.backend == name(info.kind))
      fail(1, fmt::format("backend {} cannot be used: {}", options_.backend, info.reason));
  return gpus_of_job(backend, backends);
}

void Launcher::start_ranks() {
  const JobIdentity identity = make_job_identity();
  for (int number = 0; number < options_.ranks; ++number) {
    const int failure = start_rank(number, identity);
    if (failure == 0) continue;
    fail(start_failure_status(failure),
         fmt::format("cannot start '{}': {}", options_.program, error_text(failure)));
    if (ranks_.empty()) close_job();
    return;
  }
}

int Launcher::start_rank(int number, const JobIdentity& identity) {
  // A rank outside the terminal's foreground group would be stopped when it reads there.
  const bool inherits_input = number == 0 && ::isatty(STDIN_FILENO) == 0;
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing.is_open()) throw_system_error("cannot open /dev/null");
  Pipe output = make_pipe();
  Pipe error = make_pipe();
  EnvironmentChanges mps_changes;
  if (mps_)
    for (const auto& [name, value] : mps_->environment()) mps_changes[name] = value;
  std::vector<std::string> command = {options_.program};
  command.insert(command.end(), options_.arguments.begin(), options_.arguments.end());
  const StartedProcess started = start_process({
      .command = command,
      .environment = rank_environment(changed_environment(current_environment(), mps_changes),
                                      options_, identity, number),
      .input = inherits_input ? STDIN_FILENO : nothing.number(),
      .output = output.write_end.number(),
      .error = error.write_end.number(),
      .signals = signals_,
      .guardian = &guardian_,
  });
  if (started.failure != 0) return started.failure;
  const LinePrefixer prefixer(rank_prefix(number, options_.ranks));
  ranks_.push_back({.number = number,
                    .process = started.process,
                    .has_ended = false,
                    .channels = {{std::move(output.read_end), prefixer, output_},
                                 {std::move(error.read_end), prefixer, error_}}});
  return 0;
}

void Launcher::wait_for_events() {
  const auto writable = [](const OutputStream& stream, const OutputStream& other) {
    const bool may_write = stream.has_pending() && !other.is_inside_line();
    return pollfd{may_write ? stream.descriptor() : -1, POLLOUT, 0};
  };
  std::vector<pollfd> polled = {
      {signals_.descriptor(), POLLIN, 0}, writable(output_, error_), writable(error_, output_)};
  std::vector<Channel*> channels;
  for (Rank& rank : ranks_) {
    for (Channel& channel : rank.channels) {
      // While output waits for its reader no more is read: ranks wait as if they wrote to it.
      if (!channel.pipe.is_open() || channel.destination.has_pending()) continue;
      channels.push_back(&channel);
      polled.push_back({channel.pipe.number(), POLLIN, 0});
    }
  }
  if (::poll(polled.data(), polled.size(), wait_milliseconds()) < 0 && errno != EINTR)
    throw_system_error("cannot wait for ranks");

  for (std::size_t i = 0; i < channels.size(); ++i)
    if (polled[3 + i].revents != 0) read_channel(*channels[i]);
  if (polled[1].revents != 0) write_output(output_);
  // Both may lead to the same place: only one of them may be inside a line.
  if (polled[2].revents != 0 && !output_.is_inside_line()) write_output(error_);
  if (polled[0].revents != 0) receive_signals();
  enforce_deadline();
}

int Launcher::wait_milliseconds() const {
  if (!deadline_ && !suspect_) return -1;
  auto next = deadline_.value_or(Clock::time_point::max());
  if (suspect_) next = std::min(next, suspect_->verdict_at);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
  return static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

void Launcher::write_output(OutputStream& stream) {
  stream.write_some();
  if (stream.failure() == 0) return;
  lost_output_ = true;
  // From here on ranks see what they would see if they wrote there themselves: a closed pipe.
  for (Rank& rank : ranks_)
    for (Channel& channel : rank.channels)
      if (&channel.destination == &stream) channel.pipe.reset();
  if (&stream == &output_)
    report(fmt::format("cannot write to standard output: {}", error_text(stream.failure())));
}

void Launcher::read_channel(Channel& channel) {
  char buffer[16 << 10];
  const ssize_t bytes = ::read(channel.pipe.number(), buffer, sizeof buffer);
  if (bytes > 0) {
    channel.prefixer.feed({buffer, static_cast<std::size_t>(bytes)}, channel.destination.pending());
  } else if (bytes == 0 || errno != EINTR) {
    close_channel(channel);
  }
}

void Launcher::drain_channel(Channel& channel) {
  if (!channel.pipe.is_open()) return;
  int available = 0;
  if (::ioctl(channel.pipe.number(), FIONREAD, &available) != 0) return;
  std::string bytes(static_cast<std::size_t>(available), '\0');
  const ssize_t taken =
      bytes.empty() ? 0 : ::read(channel.pipe.number(), bytes.data(), bytes.size());
  if (taken > 0)
    channel.prefixer.feed(std::string_view(bytes).substr(0, static_cast<std::size_t>(taken)),
                          channel.destination.pending());
}

void Launcher::close_channel(Channel& channel) {
  if (!channel.pipe.is_open()) return;
  channel.prefixer.finish(channel.destination.pending());
  channel.pipe.reset();
}

void Launcher::receive_signals() {
  while (const auto signal = signals_.next()) {
    if (signal->number != SIGCHLD) {
      forward_signal(signal->number);
      continue;
    }
    // One SIGCHLD can stand for several ranks; it names the one that ended first.
    const auto first = std::ranges::find(ranks_, signal->sender, &Rank::process);
    if (first != ranks_.end()) look_at_rank(*first);
    for (Rank& rank : ranks_) look_at_rank(rank);
    if (ranks_.empty() || !running_ranks().empty()) continue;
    if (suspect_) give_verdict();
    close_job();
  }
}

void Launcher::forward_signal(int signal) {
  signal_ranks(signal);
  if (!is_terminating(signal)) return;
  if (ranks_.empty()) abandons_output_ = true;
  if (suspect_) give_verdict();
  if (!interrupted_by_) interrupted_by_ = signal;
  set_deadline();
}

void Launcher::look_at_rank(Rank& rank) {
  ProcessEnd end;
  if (rank.has_ended || !has_ended(rank.process, end)) return;
  rank.has_ended = true;
  // What the rank said last stands before what is said about it.
  if (!end.is_success())
    for (Channel& channel : rank.channels) drain_channel(channel);
  if (end.is_success() || failed_status_ || interrupted_by_) return;
  if (!suspect_)
    suspect_ = Suspect{rank.number, end, Clock::now() + time_to_speak};
  else if (end.by_signal && !suspect_->end.by_signal)
    // Its peers saw its connections close before the kernel told us of its end.
    suspect_ = Suspect{rank.number, end, suspect_->verdict_at};
}

void Launcher::give_verdict() {
  const Suspect suspect = *std::exchange(suspect_, std::nullopt);
  fail(suspect.end.status(), fmt::format("rank {} {}", suspect.rank, suspect.end.describe()));
}

void Launcher::fail(int status, const std::string& message) {
  failed_status_ = status;
  report(message + (running_ranks().empty() ? "" : "; ending the other ranks"));
  signal_ranks(SIGTERM);
  set_deadline();
}

void Launcher::enforce_deadline() {
  if (suspect_ && Clock::now() >= suspect_->verdict_at) give_verdict();
  if (!deadline_ || Clock::now() < *deadline_) return;
  deadline_.reset();
  if (ranks_.empty()) {
    abandons_output_ = true;
    return;
  }
  const std::vector<int> running = running_ranks();
  report(fmt::format("{} {} did not end within {} s; killing {}",
                     running.size() == 1 ? "rank" : "ranks", fmt::join(running, ", "),
                     options_.grace, running.size() == 1 ? "it" : "them"));
  signal_ranks(SIGKILL);
}

void Launcher::set_deadline() {
  if (deadline_) return;
  deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(options_.grace));
}

void Launcher::signal_ranks(int signal) {
  for (const Rank& rank : ranks_) ::kill(-rank.process, signal);
}

void Launcher::close_job() {
  for (Rank& rank : ranks_) {
    for (Channel& channel : rank.channels) {
      drain_channel(channel);
      close_channel(channel);
    }
  }
  kill_and_reap_ranks();
  deadline_.reset();
  if (interrupted_by_) set_deadline();
}

void Launcher::kill_and_reap_ranks() noexcept {
  signal_ranks(SIGKILL);
  // As long as they are not reaped nobody else gets their numbers.
  guardian_.forget();
  for (const Rank& rank : ranks_) ::waitpid(rank.process, nullptr, 0);
  ranks_.clear();
}

void Launcher::report(const std::string& message) {
  error_.pending() += fmt::format("iridium {}: {}\n", options_.command, message);
}

std::vector<int> Launcher::running_ranks() const {
  std::vector<int> running;
  for (const Rank& rank : ranks_)
    if (!rank.has_ended) running.push_back(rank.number);
  return running;
}

bool Launcher::is_finished() const {
  const bool has_pending = output_.has_pending() || error_.has_pending();
  return ranks_.empty() && (abandons_output_ || !has_pending);
}

int Launcher::status() const {
  if (failed_status_) return *failed_status_;
  if (interrupted_by_) return 128 + *interrupted_by_;
  return lost_output_ ? 1 : 0;
}

}  // namespace iridium::cli
