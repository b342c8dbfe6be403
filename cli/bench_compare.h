// Two runs of `iridium bench` side by side: `iridium bench --compare`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/bench_results.h"

namespace iridium::cli {

/// What became of a figure.
enum class Change {
  none,     ///< no more than noise, or there are no two numbers
  faster,   ///< by more than the threshold and the noise
  slower,   ///< by more than the threshold and the noise
  failed,   ///< had a number, and failed since
  skipped,  ///< had a number, and was not tried since
};

/// The change's name: "slower"; empty for none.
std::string_view name(Change change);

/// A figure that is in both files.
struct FigurePair {
  BenchFigure before;
  BenchFigure after;
  double ratio = 0;  ///< of the medians, after by before; 0 where there are no two times
  double noise = 0;  ///< of the ratio, as a share of it
  Change change = Change::none;
};

/// What changed from one run to another.
struct Comparison {
  double threshold = 0;
  std::vector<std::string> warnings;  ///< why the runs may not be comparable
  std::vector<FigurePair> pairs;      ///< in the order of the run before
  std::vector<BenchFigure> only_before;
  std::vector<BenchFigure> only_after;
  bool is_after_complete = true;

  /// Whether a figure is slower, or had a number before and has none any more, or the run after is
  /// not complete.
  bool is_worse() const;
  /// Of the pairs with two times; 0 where there are none.
  double median_ratio() const;
};

/// Pairs the figures that agree in everything but what was measured. A pair is `slower` when its
/// ratio is above 1 + max(threshold, noise), and `faster` when its inverse is. Fewer
/// than seven samples show too little of the noise: there the threshold must be above it. Throws
/// `invalid_argument` for a threshold that is negative or not finite; 0.05 stands for 5 %.
Comparison compare(const BenchRun& before, const BenchRun& after, double threshold);

/// For people: warnings, a table, what is in one run only, a line that sums it up, and one that
/// says what is worse.
std::string as_table(const Comparison& comparison);

/// By what share two figures with numbers may differ for no reason: their spreads, from the 10th to
/// the 90th percentile by the median, in quadrature, as errors of a quotient add up. Each is the
/// whole width, 2.6 standard deviations of a normal distribution, and does not shrink with the
/// number of samples: clocks and placement differ from run to run, and more samples of one run do
/// not average that out.
double noise_of(const BenchFigure& before, const BenchFigure& after);

}  // namespace iridium::cli
