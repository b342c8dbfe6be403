// What the ground costs: making a context, mapping its window, an allocation, a host barrier.
// Rank 0 prints one line per figure, or with --json one JSON object per line.
// Run it with: iridium run -n 8 -- build/bench/ground [--json]
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "figures.h"
#include "iridium/iridium.h"

namespace {

using iridium::bench::Clock;
using iridium::bench::microseconds_since;

/// What `body` returns, in microseconds, `count` times.
std::vector<double> collect(int count, const std::function<double()>& body) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) times.push_back(body());
  return times;
}

std::vector<double> collect_durations(int count, const std::function<void()>& body) {
  return collect(count, [&] {
    const auto start = Clock::now();
    body();
    return microseconds_since(start);
  });
}

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
  const iridium::bench::Report report(context, json);
  // Two heaps at a time must fit the device.
  report.add({.what = "context", .times = collect(20, time_context)});
  report.add({.what = "segments and window", .times = collect(20, time_window)});
  report.add(
      {.what = "host barrier", .times = collect_durations(3000, [&] { context.barrier(); })});
  report.add({.what = "allocate and free",
              .times = collect_durations(1000, [&] { context.allocate<char>(65536); })});
  std::vector<int> ranks;
  for (int rank = 0; rank < context.size(); ++rank) ranks.push_back(rank);
  report.add(
      {.what = "make a team", .times = collect_durations(100, [&] { context.make_team(ranks); })});
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
