#include "cli/bench_peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "iridium/errors.h"

namespace iridium::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds start_patience{120};
constexpr std::chrono::seconds end_patience{15};
constexpr std::chrono::seconds kill_patience{15};
constexpr std::chrono::milliseconds poll_interval{5};

constexpr const char* log_file = "log";
constexpr const char* rows_file = "rows";
constexpr const char* plan_file = "plan.json";
constexpr const char* versions_file = "versions.json";
constexpr const char* ready_file = "ready";
constexpr const char* end_file = "end";
/// Made by us: it gets no turns any more.
constexpr const char* gone_file = "gone";

void touch(const fs::path& path) {
  std::ofstream(path, std::ios::app).flush();
}

/// Whether `condition` has come to hold before patience ended.
template <class Condition>
bool wait_until(std::chrono::milliseconds patience, Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(poll_interval);
  }
  return true;
}

std::string done_file(std::size_t heat, int round) {
  return fmt::format("{}.{}.done", heat, round);
}

std::string make_folder() {
  std::error_code problem;
  std::string path = (fs::temp_directory_path(problem) / "iridium-peer-XXXXXX").string();
  if (problem || ::mkdtemp(path.data()) == nullptr)
    throw Error(Errc::system,
                "cannot make a folder for a peer: TMPDIR names no folder to write in");
  return path;
}

std::string plan_text(const std::vector<BenchHeat>& heats) {
  nlohmann::ordered_json plan = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < heats.size(); ++i) {
    plan.push_back({{"heat", i}, {"operation", heats[i].operation}, {"bytes", heats[i].bytes}});
    if (!heats[i].dtype.empty()) plan.back()["dtype"] = heats[i].dtype;
    if (!heats[i].op.empty()) plan.back()["op"] = heats[i].op;
    if (const auto& shape = heats[i].shape)
      plan.back().update({{"m", shape->rows},
                          {"n", shape->columns},
                          {"k", shape->depth},
                          {"layout", heats[i].layout}});
  }
  return plan.dump() + "\n";
}

}  // namespace

BenchPeer::BenchPeer(const std::string& command, const BenchCommand& bench,
                     const std::vector<BenchHeat>& heats, int ranks, const SignalSource& signals)
    : signals_(signals),
      name_(fs::path(command.substr(0, command.find(' '))).stem()),
      heats_(heats),
      ranks_(ranks),
      folder_(make_folder()),
      guardian_(folder_) {
  const fs::path folder = folder_;
  std::ofstream(folder / plan_file) << plan_text(heats);
  touch(folder / rows_file);
  start(command, {"--ranks", std::to_string(ranks), "--plan", folder / plan_file, "--samples",
                  std::to_string(bench.samples), "--sample-time",
                  fmt::format("{}", bench.sample_milliseconds), "--turns", folder_, "--rows",
                  folder / rows_file});
  is_ready_ = wait_until_ready();
  if (!is_ready_) touch(folder / gone_file);
}

BenchPeer::~BenchPeer() {
  stop();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  guardian_.forget();
  if (process_ > 0) ::waitpid(process_, nullptr, 0);
}

void BenchPeer::start(const std::string& command, const std::vector<std::string>& arguments) {
  // The command may have arguments of its own; ours follow them.
  const std::string line = "exec " + command + " \"$@\"";
  std::vector<const char*> words = {"/bin/sh", "-c", line.c_str(), "peer"};
  for (const std::string& argument : arguments) words.push_back(argument.c_str());
  words.push_back(nullptr);

  const std::string log = (fs::path(folder_) / log_file).string();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A group of its own, so that all of it can be ended, by signals that this process has blocked.
  sigset_t none;
  sigset_t every;
  sigemptyset(&none);
  sigfillset(&every);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &every);
  const int failure = ::posix_spawn(&process_, words[0], &actions, &attributes,
                                    const_cast<char* const*>(words.data()), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failure != 0)
    throw Error(Errc::system, fmt::format("cannot start '{}': {}", command,
                                          std::generic_category().message(failure)));
  guardian_.watch(process_);
  reaper_ = std::thread([this] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    // It stays a zombie, so that nobody else gets its number while its group may still be killed.
    siginfo_t end = {};
    while (::waitid(P_PID, static_cast<id_t>(process_), &end, WEXITED | WNOWAIT) < 0 &&
           errno == EINTR) {
    }
    is_gone_ = true;
    touch(fs::path(folder_) / gone_file);
  });
}

bool BenchPeer::wait_until_ready() const {
  const auto is_ready = [this] { return fs::exists(fs::path(folder_) / ready_file); };
  wait_until(start_patience, [&] { return is_ready() || is_gone_ || signals_.has_terminating(); });
  return is_ready();
}

void BenchPeer::stop() noexcept {
  if (!reaper_.joinable()) return;
  touch(fs::path(folder_) / end_file);
  const auto is_gone = [this] { return is_gone_.load(); };
  // Whoever has started others gets the chance to end them.
  if (!is_ready_ || !wait_until(end_patience, is_gone)) {
    ::kill(-process_, SIGTERM);
    wait_until(kill_patience, is_gone);
  }
  ::kill(-process_, SIGKILL);
  reaper_.join();
}

std::string BenchPeer::last_words() const {
  std::ifstream log(fs::path(folder_) / log_file);
  std::string last;
  for (std::string line; std::getline(log, line);)
    if (!line.empty()) last = line;
  return last.empty() ? "it said nothing" : last;
}

Versions BenchPeer::versions() const {
  const fs::path path = fs::path(folder_) / versions_file;
  if (!fs::exists(path)) return {};
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  return versions_from_json(text, "the versions of " + name_);
}

BenchPeer::Findings BenchPeer::end() {
  const bool had_gone = fs::exists(fs::path(folder_) / gone_file);
  stop();
  Findings found = {.contender = name_};
  std::vector<BenchFigure>& figures = found.figures;
  std::string problem;
  std::ifstream rows(fs::path(folder_) / rows_file);
  for (std::string line; std::getline(rows, line) && !rows.eof();) try {
      figures.push_back(figure_from_line(line, "a line of " + name_));
      figures.back().ranks = ranks_;
      found.contender = figures.back().contender;
    } catch (const Error& error) {
      if (problem.empty()) problem = error.what();
    }
  try {
    found.versions = versions();
  } catch (const Error& error) {
    if (problem.empty()) problem = error.what();
  }
  if (had_gone && problem.empty())
    problem = fmt::format("{} did not take this turn: {}", name_, last_words());
  if (problem.empty()) return found;
  for (const BenchHeat& heat : heats_)
    for (const char* mode : bench_modes) {
      const bool is_there = std::ranges::any_of(
          figures, [&](const BenchFigure& one) { return is_of(one, heat) && one.mode == mode; });
      if (is_there) continue;
      figures.push_back(blank_figure(heat, {.contender = found.contender}, ranks_, mode));
      figures.back().failed = problem;
    }
  return found;
}

bool give_turn(const std::string& folder, std::size_t heat, int round,
               std::chrono::milliseconds patience) {
  const fs::path path = folder;
  const std::string turn = fmt::format("{}.{}", heat, round);
  if (fs::exists(path / gone_file)) return false;
  touch(path / turn);
  const auto is_done = [&] { return fs::exists(path / done_file(heat, round)); };
  const auto is_gone = [&] { return fs::exists(path / gone_file); };
  if (!wait_until(patience, [&] { return is_done() || is_gone(); })) touch(path / gone_file);
  return is_done();
}

}  // namespace iridium::cli
