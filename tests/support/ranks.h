// Running ranks in tests, as threads of this process or as processes of their own.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "iridium/iridium.h"

namespace iridium::test {

/// How the ranks of a test run.
enum class RankKind { threads, processes };
std::string name(RankKind kind);

/// What a rank does. It makes its own context, so that construction can be tested too. To fail, it
/// throws.
using Scenario = std::function<void(const Job&)>;

/// Makes `scenario` known under `name`, so that a process started from this binary can find it.
struct RegisterScenario {
  RegisterScenario(const char* name, Scenario scenario);
};

/// Defines and registers a scenario: IR_SCENARIO(meets) { Context context(job); … }
#define IR_SCENARIO(scenario_name)                                           \
  static void scenario_name##_scenario(const ::iridium::Job& job);           \
  static const ::iridium::test::RegisterScenario scenario_name##_registered( \
      #scenario_name, scenario_name##_scenario);                             \
  static void scenario_name##_scenario([[maybe_unused]] const ::iridium::Job& job)

/// How one rank ended.
struct RankResult {
  int status = 0;     ///< exit status of a process; 0 or 1 for a thread
  int signal = 0;     ///< that ended the process, else 0
  std::string error;  ///< what it threw, as "rank 2: message"
  std::chrono::steady_clock::time_point ended;

  bool ok() const { return status == 0 && signal == 0; }
};

/// Runs the scenario on `jobs.size()` ranks and waits for them all. Skips the rest of the test when
/// they are more than IRIDIUM_TEST_MOST_RANKS, where that is set: for machines with few GPUs.
std::vector<RankResult> run_ranks(RankKind kind, const std::string& scenario,
                                  const std::vector<Job>& jobs);
/// The same on a fresh job of `size` ranks.
std::vector<RankResult> run_ranks(RankKind kind, const std::string& scenario, int size);

/// Fails the test with every rank's message unless all ranks ended well.
void expect_all_ok(const std::vector<RankResult>& results);

/// Fails the test unless `body` throws an `Error` with this code; returns it.
Error expect_error(Errc code, const std::function<void()>& body);

/// For main(): runs a scenario and returns true when this process was started by `run_ranks`.
bool run_as_rank(int argc, char** argv, int& status);

/// Throws when `condition` does not hold: how a scenario fails.
void require(bool condition, const std::string& what);
/// Throws unless `body` throws an `Error` with this code and, unless empty, these ranks; returns
/// it.
Error require_error(Errc code, const std::vector<int>& ranks, const std::function<void()>& body);

/// A timeout for tests in which a rank stays away: long enough for everything that does work.
inline constexpr std::chrono::milliseconds short_timeout{3000};

/// One kind of ranks and a number of them: the parameter of tests that must hold for all.
struct Ranks {
  RankKind kind;
  int size;
};
std::string name(const Ranks& ranks);
/// Threads and processes, 1, 2, 3, 4 and 8 of them.
std::vector<Ranks> all_ranks();
/// Threads and processes, `size` of them.
std::vector<Ranks> both_kinds(int size);

}  // namespace iridium::test
