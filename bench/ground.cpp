// What the ground costs: making a context, mapping its window, an allocation, a host barrier.
// Rank 0 prints one line per figure, or with --json one JSON object per line.
// Run it with: iridium run -n 8 -- build/bench/ground [--json]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "iridium/iridium.h"

namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

/// What `body` returns, in microseconds, `count` times, in ascending order.
std::vector<double> collect(int count, const std::function<double()>& body) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) times.push_back(body());
  std::sort(times.begin(), times.end());
  return times;
}

std::vector<double> collect_durations(int count, const std::function<void()>& body) {
  return collect(count, [&] {
    const auto start = Clock::now();
    body();
    return microseconds_since(start);
  });
}

class Report {
 public:
  Report(const iridium::Context& context, bool json) : context_(context), json_(json) {}

  void add(const char* what, const std::vector<double>& times) const {
    if (context_.rank() != 0) return;
    const auto at = [&](double share) {
      return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
    };
    const std::string backend(iridium::name(context_.backend()));
    const std::string placement(iridium::name(context_.placement()));
    if (json_)
      std::printf(
          R"({"schema": 1, "what": "%s", "ranks": %d, "backend": "%s", "placement": "%s", )"
          R"("heap_bytes": %zu, "runs": %zu, "median_us": %.2f, "p10_us": %.2f, "p90_us": %.2f})"
          "\n",
          what, context_.size(), backend.c_str(), placement.c_str(), context_.heap_bytes(),
          times.size(), at(0.5), at(0.1), at(0.9));
    else
      std::printf("%d ranks, %s, %6zu MiB: %-22s median %10.1f us, 10 %% %10.1f, 90 %% %10.1f\n",
                  context_.size(), backend.c_str(), context_.heap_bytes() >> 20, what, at(0.5),
                  at(0.1), at(0.9));
  }

 private:
  const iridium::Context& context_;
  bool json_;
};

double time_context() {
  const auto start = Clock::now();
  const iridium::Context context(iridium::ContextOptions{.name = "bench"});
  return microseconds_since(start);
}

/// From the first segment to the last mapping.
double time_window() {
  Clock::time_point start;
  double time = 0;
  const iridium::Context context(
      iridium::ContextOptions{.name = "bench", .on_step = [&](std::string_view step) {
                                if (step == "segments") start = Clock::now();
                                if (step == "world") time = microseconds_since(start);
                              }});
  return time;
}

void run(bool json) {
  iridium::Context context;
  const Report report(context, json);
  // Two heaps at a time must fit the device.
  report.add("context", collect(20, time_context));
  report.add("segments and window", collect(20, time_window));
  report.add("host barrier", collect_durations(3000, [&] { context.barrier(); }));
  report.add("allocate and free", collect_durations(1000, [&] { context.allocate<char>(65536); }));
  std::vector<int> ranks;
  for (int rank = 0; rank < context.size(); ++rank) ranks.push_back(rank);
  report.add("make a team", collect_durations(100, [&] { context.make_team(ranks); }));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 && std::strcmp(argv[1], "--json") == 0);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
