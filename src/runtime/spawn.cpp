#include <exception>
#include <mutex>
#include <thread>

#include "iridium/context.h"

namespace iridium {

void spawn(int size, const std::function<void(Context&)>& body) {
  spawn(size, ContextOptions{}, body);
}

void spawn(int size, const ContextOptions& options, const std::function<void(Context&)>& body) {
  std::mutex mutex;
  std::exception_ptr first_failure;
  std::vector<std::thread> threads;
  for (const Job& job : make_local_jobs(size))
    threads.emplace_back([&, job] {
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
    });
  for (std::thread& thread : threads) thread.join();
  if (first_failure) std::rethrow_exception(first_failure);
}

}  // namespace iridium
