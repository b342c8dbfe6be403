// What the ground costs: making a context, an allocation, a host barrier. Rank 0 prints one line
// per figure. Run it with: iridium run -n 8 -- build/bench/ground
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <vector>

#include "iridium/iridium.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Figure {
  double median_us;
  double low_us;
  double high_us;
};

/// Runs `body` `count` times and times each.
Figure measure(int count, const std::function<void()>& body) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const auto start = Clock::now();
    body();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
  };
  return {at(0.5), at(0.1), at(0.9)};
}

void print(const iridium::Context& context, const char* what, const Figure& figure) {
  if (context.rank() != 0) return;
  std::printf("%d ranks, %s backend: %-24s median %9.1f us, 10 %% %9.1f, 90 %% %9.1f\n",
              context.size(), std::string(iridium::name(context.backend())).c_str(), what,
              figure.median_us, figure.low_us, figure.high_us);
}

void run() {
  iridium::Context context;
  const Figure creation =
      measure(30, [] { const iridium::Context other(iridium::ContextOptions{.name = "bench"}); });
  print(context, "context", creation);

  print(context, "host barrier", measure(3000, [&] { context.barrier(); }));
  print(context, "allocate and free 1 MiB",
        measure(1000, [&] { context.allocate<char>(1 << 20); }));
  std::vector<iridium::SymmetricArray<char>> kept;
  print(context, "allocate 4 KiB",
        measure(1000, [&] { kept.push_back(context.allocate<char>(4096)); }));
  std::vector<int> ranks;
  for (int rank = 0; rank < context.size(); ++rank) ranks.push_back(rank);
  print(context, "make a team", measure(100, [&] { context.make_team(ranks); }));
}

}  // namespace

int main() {
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
