// What the benchmarks share: a clock, and one line per figure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "iridium/context.h"

namespace iridium::bench {

using Clock = std::chrono::steady_clock;

inline double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

struct Figure {
  std::string what;
  std::vector<double> times = {};  ///< microseconds
  int round = 1;                   ///< of programs that take turns
  // What one call does, where that matters.
  std::size_t bytes = 0;
  std::size_t operations = 0;
  int blocks = 0;
};

/// Rank 0 prints one line per figure, or one JSON object per line (bench/results/README.md).
class Report {
 public:
  Report(const Context& context, bool json) : context_(context), json_(json) {}

  void add(Figure figure) const {
    if (context_.rank() != 0) return;
    std::sort(figure.times.begin(), figure.times.end());
    const auto at = [&](double share) {
      const double last = static_cast<double>(figure.times.size() - 1);
      return figure.times[static_cast<std::size_t>(share * last)];
    };
    const std::string backend(name(context_.backend()));
    const std::string placement(name(context_.placement()));
    if (json_)
      std::printf(
          R"({"schema": 1, "what": "%s", "ranks": %d, "backend": "%s", "placement": "%s", )"
          R"("heap_bytes": %zu, "round": %d, "bytes": %zu, "operations": %zu, "blocks": %d, )"
          R"("runs": %zu, "median_us": %.4f, "p10_us": %.4f, "p90_us": %.4f})"
          "\n",
          figure.what.c_str(), context_.size(), backend.c_str(), placement.c_str(),
          context_.heap_bytes(), figure.round, figure.bytes, figure.operations, figure.blocks,
          figure.times.size(), at(0.5), at(0.1), at(0.9));
    else
      std::printf("%d ranks, %s: %-34s median %10.3f us, 10 %% %10.3f, 90 %% %10.3f%s\n",
                  context_.size(), backend.c_str(), figure.what.c_str(), at(0.5), at(0.1), at(0.9),
                  details(figure, at(0.5)).c_str());
    std::fflush(stdout);
  }

 private:
  static std::string details(const Figure& figure, double median) {
    std::string text;
    if (figure.blocks > 0) text += ", " + std::to_string(figure.blocks) + " blocks";
    if (figure.bytes > 0)
      text += ", " + std::to_string(static_cast<double>(figure.bytes) / median / 1000) + " GB/s";
    if (figure.operations > 0)
      text += ", " + std::to_string(static_cast<double>(figure.operations) / median) + " per us";
    return text;
  }

  const Context& context_;
  bool json_;
};

}  // namespace iridium::bench
