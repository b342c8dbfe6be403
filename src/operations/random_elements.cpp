#include "operations/random_elements.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "base/thread.h"

namespace iridium {
namespace {

struct JoinedThreads {
  std::vector<std::thread> threads;

  ~JoinedThreads() {
    for (std::thread& thread : threads) thread.join();
  }
};

}  // namespace

void for_each_range(std::size_t count, int members,
                    const std::function<void(std::size_t first, std::size_t end)>& work) {
  constexpr std::size_t worth_a_thread = 1 << 20;
  // Asking reads a file.
  static const auto cores = static_cast<std::size_t>(std::thread::hardware_concurrency());
  const std::size_t ranges = std::max<std::size_t>(
      1, std::min(cores / static_cast<std::size_t>(members), count / worth_a_thread));
  const auto begin = [&](std::size_t range) { return count * range / ranges; };
  JoinedThreads others;
  for (std::size_t range = 1; range < ranges; ++range)
    others.threads.push_back(
        start_thread([&work, first = begin(range), end = begin(range + 1)] { work(first, end); }));
  work(0, begin(1));
}

}  // namespace iridium
