#include "command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "programs.h"

namespace iridium::cli {
namespace {

constexpr int patience_milliseconds = 30'000;

void start_in_child(std::vector<char*> arguments, const CommandOptions& options, int input,
                    int output, int error) {
  // What runs the tests may ignore or block signals, as shells do for jobs in the background.
  for (int signal = 1; signal < SIGRTMIN; ++signal)
    ::signal(signal, signal == options.ignored_signal ? SIG_IGN : SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(options.error_to_output ? output : error, STDERR_FILENO);
  // Where there are GPUs, ranks that are no more than scripts would start MPS for nothing.
  ::setenv("IRIDIUM_BACKEND", "host", 0);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

bool is_readable(int descriptor) {
  pollfd polled = {descriptor, POLLIN, 0};
  return ::poll(&polled, 1, patience_milliseconds) == 1;
}

/// Appends what can be read; closes the descriptor at the end of the stream.
void read_more(Descriptor& descriptor, std::string& text) {
  char buffer[64 << 10];
  const ssize_t bytes = ::read(descriptor.number(), buffer, sizeof buffer);
  if (bytes > 0) {
    text.append(buffer, static_cast<std::size_t>(bytes));
  } else {
    descriptor.reset();
  }
}

}  // namespace

Command::Command(const std::vector<std::string>& arguments, const CommandOptions& options) {
  std::string program = command_line_path();
  std::vector<char*> pointers = {program.data()};
  for (const std::string& argument : arguments)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  Pipe input = make_pipe();
  Pipe output = make_pipe();
  Pipe error = make_pipe();
  process_ = ::fork();
  if (process_ < 0) throw_system_error("cannot fork");
  if (process_ == 0)
    start_in_child(pointers, options, input.read_end.number(), output.write_end.number(),
                   error.write_end.number());
  input_ = std::move(input.write_end);
  output_ = std::move(output.read_end);
  error_ = std::move(error.read_end);
}

Command::~Command() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

void Command::send_signal(int signal) const {
  ::kill(process_, signal);
}

void Command::stop() const {
  send_signal(SIGSTOP);
  int status = 0;
  if (::waitpid(process_, &status, WUNTRACED) != process_ || !WIFSTOPPED(status))
    throw std::runtime_error("the command ended instead of stopping");
}

void Command::write_input(const std::string& text) const {
  if (::write(input_.number(), text.data(), text.size()) != std::ssize(text))
    throw_system_error("cannot write the command's input");
}

std::string Command::read_line() {
  for (;;) {
    const std::size_t newline = result_.output.find('\n');
    if (newline != std::string::npos) {
      std::string line = result_.output.substr(0, newline);
      result_.output.erase(0, newline + 1);
      return line;
    }
    if (!output_.is_open()) throw std::runtime_error("the command ended before the line");
    read_both();
  }
}

CommandResult Command::wait() {
  input_.reset();
  while (output_.is_open() || error_.is_open()) read_both();
  result_.status = wait_without_reading();
  return result_;
}

int Command::wait_without_reading() {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(patience_milliseconds);
  int status = 0;
  while (::waitpid(process_, &status, WNOHANG) == 0) {
    if (Clock::now() > deadline) throw std::runtime_error("the command does not end");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  process_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void Command::read_both() {
  pollfd polled[] = {{output_.number(), POLLIN, 0}, {error_.number(), POLLIN, 0}};
  if (::poll(polled, 2, patience_milliseconds) <= 0)
    throw std::runtime_error("the command neither prints nor ends");
  if (polled[0].revents != 0) read_more(output_, result_.output);
  if (polled[1].revents != 0) read_more(error_, result_.error);
}

std::string temporary_path(const std::string& name) {
  return (std::filesystem::path(testing::TempDir()) / fmt::format("{}_{}", ::getpid(), name))
      .string();
}

CommandResult run_command(const std::vector<std::string>& arguments, const std::string& input) {
  Command command(arguments);
  if (!input.empty()) command.write_input(input);
  return command.wait();
}

std::vector<std::string> run_script(int ranks, const std::string& script,
                                    const std::vector<std::string>& options) {
  std::vector<std::string> arguments = {"run", "-n", std::to_string(ranks)};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"--", "/bin/sh", "-c", script});
  return arguments;
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::ranges::sort(lines);
  return lines;
}

std::ptrdiff_t count_files_like(const std::string& path) {
  return std::ranges::count_if(
      std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()),
      [&](const auto& entry) { return entry.path().string().starts_with(path); });
}

bool ends(pid_t process) {
  const Descriptor descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!descriptor.is_open()) throw_system_error("cannot watch a process");
  return is_readable(descriptor.number());
}

Lifeline::Lifeline() : pipe_(make_pipe()) {
  if (::fcntl(pipe_.write_end.number(), F_SETFD, 0) != 0)
    throw_system_error("cannot let children inherit a pipe");
}

bool Lifeline::is_cut() {
  pipe_.write_end.reset();
  return is_readable(pipe_.read_end.number());
}

}  // namespace iridium::cli
