#include "support/ranks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <thread>

#include "base/file_descriptor.h"
#include "base/system_error.h"
#include "base/text.h"

namespace iridium::test {
namespace {

constexpr const char* scenario_variable = "IRIDIUM_TEST_SCENARIO";
constexpr const char* most_ranks_variable = "IRIDIUM_TEST_MOST_RANKS";

std::map<std::string, Scenario>& scenarios() {
  static std::map<std::string, Scenario> map;
  return map;
}

/// Ends the test as skipped, by what GoogleTest catches, when it needs more ranks than there may
/// be.
void skip_beyond_most_ranks(std::size_t ranks) {
  const char* const text = std::getenv(most_ranks_variable);
  if (text == nullptr) return;
  const auto most = parse_number(text);
  if (!most || *most == 0)
    throw std::runtime_error(std::string(most_ranks_variable) + " is '" + text +
                             "': expected a number from 1 up");
  if (ranks <= *most) return;
  const std::string reason =
      std::to_string(ranks) + " ranks; " + most_ranks_variable + " is " + text;
  [&] { GTEST_SKIP() << reason; }();
  throw testing::AssertionException(
      {testing::TestPartResult::kSkip, __FILE__, __LINE__, reason.c_str()});
}

std::optional<std::string> run_scenario(const Scenario& scenario, const Job& job) {
  try {
    scenario(job);
    return std::nullopt;
  } catch (const std::exception& error) {
    return "rank " + std::to_string(job.rank) + ": " + error.what();
  }
}

std::vector<RankResult> run_threads(const Scenario& scenario, const std::vector<Job>& jobs) {
  std::vector<RankResult> results(jobs.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    threads.emplace_back([&, i] {
      const auto error = run_scenario(scenario, jobs[i]);
      results[i].ended = std::chrono::steady_clock::now();
      results[i].status = error ? 1 : 0;
      results[i].error = error.value_or("");
    });
  for (std::thread& thread : threads) thread.join();
  return results;
}

struct RankProcess {
  pid_t process = -1;
  FileDescriptor errors;  ///< what the rank writes to standard error
};

RankProcess start_process(const std::string& scenario, const Job& job) {
  std::vector<std::string> variables = {
      std::string(scenario_variable) + "=" + scenario, "IRIDIUM_RANK=" + std::to_string(job.rank),
      "IRIDIUM_SIZE=" + std::to_string(job.size), "IRIDIUM_JOB=" + job.rendezvous,
      "IRIDIUM_TOKEN=" + job.token};
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  environment.push_back(nullptr);

  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw system_error("pipe2");
  RankProcess result;
  result.errors = FileDescriptor(ends[0]);
  const FileDescriptor write_end(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDERR_FILENO);
  std::string program = "/proc/self/exe";
  std::array<char*, 2> arguments = {program.data(), nullptr};
  errno = ::posix_spawn(&result.process, program.c_str(), &actions, nullptr, arguments.data(),
                        environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (errno != 0) throw system_error("posix_spawn");
  return result;
}

RankResult finish_process(RankProcess& rank) {
  RankResult result;
  std::array<char, 4096> text = {};
  for (ssize_t count = 0; (count = ::read(rank.errors.get(), text.data(), text.size())) > 0;)
    result.error.append(text.data(), static_cast<std::size_t>(count));
  int status = 0;
  ::waitpid(rank.process, &status, 0);
  result.ended = std::chrono::steady_clock::now();
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return result;
}

std::vector<RankResult> run_processes(const std::string& scenario, const std::vector<Job>& jobs) {
  std::vector<RankProcess> ranks;
  for (const Job& job : jobs) ranks.push_back(start_process(scenario, job));
  std::vector<RankResult> results(jobs.size());
  std::vector<std::thread> readers;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    readers.emplace_back([&, i] { results[i] = finish_process(ranks[i]); });
  for (std::thread& reader : readers) reader.join();
  return results;
}

}  // namespace

std::string name(RankKind kind) {
  return kind == RankKind::threads ? "threads" : "processes";
}

RegisterScenario::RegisterScenario(const char* name, Scenario scenario) {
  if (!scenarios().emplace(name, std::move(scenario)).second) {
    std::fprintf(stderr, "two scenarios are called %s\n", name);
    std::abort();
  }
}

std::vector<RankResult> run_ranks(RankKind kind, const std::string& scenario,
                                  const std::vector<Job>& jobs) {
  skip_beyond_most_ranks(jobs.size());
  const Scenario& body = scenarios().at(scenario);
  return kind == RankKind::threads ? run_threads(body, jobs) : run_processes(scenario, jobs);
}

std::vector<RankResult> run_ranks(RankKind kind, const std::string& scenario, int size) {
  return run_ranks(kind, scenario, make_local_jobs(size));
}

void expect_all_ok(const std::vector<RankResult>& results) {
  for (std::size_t rank = 0; rank < results.size(); ++rank)
    EXPECT_TRUE(results[rank].ok())
        << "rank " << rank << " ended with status " << results[rank].status << ", signal "
        << results[rank].signal << ": " << results[rank].error;
}

Error expect_error(Errc code, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(name(error.code()), name(code)) << error.what();
    return error;
  }
  ADD_FAILURE() << "expected the error " << name(code) << ", and nothing was thrown";
  return {code, "nothing was thrown"};
}

bool run_as_rank(int, char**, int& status) {
  const char* scenario = std::getenv(scenario_variable);
  if (scenario == nullptr) return false;
  const auto error = run_scenario(scenarios().at(scenario), Job::from_environment());
  if (error) std::fprintf(stderr, "%s\n", error->c_str());
  status = error ? 1 : 0;
  return true;
}

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("requirement failed: " + what);
}

Error require_error(Errc code, const std::vector<int>& ranks, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    require(error.code() == code,
            "expected the error " + std::string(name(code)) + ", got: " + error.what());
    require(ranks.empty() || error.ranks() == ranks,
            std::string("an error that names other ranks: ") + error.what());
    return error;
  }
  throw std::runtime_error("expected the error " + std::string(name(code)) +
                           ", and nothing was thrown");
}

std::string name(const Ranks& ranks) {
  return std::to_string(ranks.size) + "_" + name(ranks.kind);
}

std::vector<Ranks> both_kinds(int size) {
  return {{RankKind::threads, size}, {RankKind::processes, size}};
}

std::vector<Ranks> all_ranks() {
  std::vector<Ranks> all;
  for (const int size : {1, 2, 3, 4, 8})
    for (const Ranks& ranks : both_kinds(size)) all.push_back(ranks);
  return all;
}

}  // namespace iridium::test
