#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "iridium/context.h"
#include "iridium/errors.h"

namespace iridium {

void spawn(int size, const std::function<void(Context&)>& body) {
  spawn(size, ContextOptions{}, body);
}

void spawn(int size, const ContextOptions& options, const std::function<void(Context&)>& body) {
  // Ranks begin when there is a thread for each: those of an incomplete job would wait in vain.
  enum class Gate { closed, open, cancelled };
  std::atomic<Gate> gate = Gate::closed;
  std::mutex mutex;
  std::exception_ptr first_failure;
  const auto run_rank = [&](const Job& job) {
    gate.wait(Gate::closed);
    if (gate == Gate::cancelled) return;
    try {
      Context context(job, options);
      try {
        body(context);
      } catch (...) {
        // Kept before the context goes: its going is what makes the others fail.
        const std::lock_guard lock(mutex);
        if (!first_failure) first_failure = std::current_exception();
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first_failure) first_failure = std::current_exception();
    }
  };
  const std::vector<Job> jobs = make_local_jobs(size);
  std::vector<std::thread> threads;
  threads.reserve(jobs.size());
  const auto begin = [&](Gate how) {
    gate = how;
    gate.notify_all();
    for (std::thread& thread : threads) thread.join();
  };
  try {
    for (const Job& job : jobs) threads.emplace_back(run_rank, job);
  } catch (const std::system_error& error) {
    begin(Gate::cancelled);
    throw Error(Errc::system, fmt::format("spawn: no thread for rank {} of {}: {}", threads.size(),
                                          size, error.code().message()));
  }
  begin(Gate::open);
  if (first_failure) std::rethrow_exception(first_failure);
}

}  // namespace iridium
