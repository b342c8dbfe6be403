#include "cli/bench_compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <tuple>

#include "cli/bench_machine.h"
#include "cli/text_table.h"
#include "iridium/errors.h"
#include "iridium/operations.h"

namespace iridium::cli {
namespace {

/// What makes two figures the same one.
auto identity(const BenchFigure& figure) {
  return std::tie(figure.operation, figure.contender, figure.algorithm, figure.dtype, figure.op,
                  figure.memory, figure.mode, figure.ranks, figure.bytes, figure.shape,
                  figure.layout, figure.blocks, figure.rows, figure.tile, figure.link,
                  figure.beside_compute);
}

using Identity = decltype(identity(BenchFigure{}));

bool has_time(const BenchFigure& figure) {
  return figure.has_numbers() && figure.median_us > 0;
}

/// From the 10th to the 90th percentile, by the median.
double spread(const BenchFigure& figure) {
  return std::max(0.0, figure.p90_us - figure.p10_us) / figure.median_us;
}

/// Whether it is a plain copy: what the machine can do, and nothing of Iridium's.
bool is_limit(const BenchFigure& figure) {
  return std::ranges::find(copy_limits(), figure.contender, &Operation::name) !=
         copy_limits().end();
}

FigurePair pair_of(const BenchFigure& before, const BenchFigure& after, double threshold) {
  FigurePair pair = {before, after};
  if (before.has_numbers() && !after.has_numbers())
    pair.change = after.failed.empty() ? Change::skipped : Change::failed;
  if (!has_time(before) || !has_time(after)) return pair;
  pair.ratio = after.median_us / before.median_us;
  pair.noise = noise_of(before, after);
  if (is_limit(before)) return pair;
  const double limit = 1 + std::max(threshold, pair.noise);
  if (pair.ratio > limit) pair.change = Change::slower;
  if (1 / pair.ratio > limit) pair.change = Change::faster;
  return pair;
}

bool is_same_machine(const BenchMachine& left, const BenchMachine& right) {
  return std::tie(left.name, left.cpu, left.cores, left.device) ==
         std::tie(right.name, right.cpu, right.cores, right.device);
}

/// "cuda 12.8, torch 2.9.0".
std::string text_of(const Versions& versions) {
  std::string text;
  for (const auto& [name, version] : versions)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, version);
  return text;
}

std::vector<std::string> warnings_of(const BenchRun& before, const BenchRun& after) {
  std::vector<std::string> warnings;
  if (!is_same_machine(before.machine, after.machine))
    warnings.push_back(fmt::format("the machines differ: {} before, {} after",
                                   machine_text(before.machine), machine_text(after.machine)));
  for (const auto& [contender, versions] : before.versions)
    if (const auto found = after.versions.find(contender);
        found != after.versions.end() && found->second != versions)
      warnings.push_back(fmt::format("the versions of {} differ: {} before, {} after", contender,
                                     text_of(versions), text_of(found->second)));
  if (!before.complete) warnings.emplace_back("the run before is not complete");
  if (!after.complete) warnings.emplace_back("the run after is not complete");
  return warnings;
}

/// "iridium all_reduce ring bf16 sum plain, 4 ranks, 4096 bytes, graph".
std::string text_of(const BenchFigure& figure) {
  std::string text = figure.contender + " " + figure.operation;
  for (const std::string& word :
       {figure.algorithm, figure.dtype, figure.op, figure.memory, figure.layout})
    if (!word.empty()) text += " " + word;
  text += fmt::format(", {} {}", figure.ranks, figure.ranks == 1 ? "rank" : "ranks");
  if (figure.shape) text += ", " + name(*figure.shape);
  // Exact, since that is what figures are matched by.
  if (figure.bytes != 0) text += fmt::format(", {} bytes", figure.bytes);
  if (figure.blocks != 0)
    text += fmt::format(", {} {}", figure.blocks, figure.blocks == 1 ? "block" : "blocks");
  if (figure.rows != 0) text += fmt::format(", {} rows", figure.rows);
  if (figure.tile != 0) text += fmt::format(", tile {}", figure.tile);
  if (figure.link != Link::shared) text += fmt::format(", {}", name(figure.link));
  if (figure.beside_compute) text += ", beside compute";
  return text + ", " + figure.mode;
}

std::string time_text(const BenchFigure& figure) {
  return figure.has_numbers() ? fmt::format("{:.3f}", figure.median_us) : "";
}

/// Why a side has no number: "failed after: element 3 is 5, not 7".
std::string remark(const FigurePair& pair) {
  std::string text;
  const auto add = [&](const BenchFigure& figure, std::string_view side) {
    if (figure.has_numbers()) return;
    const bool failed = !figure.failed.empty();
    text += fmt::format("{}{} {}: {}", text.empty() ? "" : "; ", failed ? "failed" : "skipped",
                        side, failed ? figure.failed : figure.skipped);
  };
  add(pair.before, "before");
  add(pair.after, "after");
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string table_of(const std::vector<FigurePair>& pairs) {
  TextTable table({"figure", "us before", "us after", "ratio", "noise", "change", "remark"});
  for (const FigurePair& pair : pairs) {
    const bool has_ratio = pair.ratio > 0;
    table.add_row({text_of(pair.before), time_text(pair.before), time_text(pair.after),
                   has_ratio ? fmt::format("{:.3f}", pair.ratio) : "",
                   has_ratio ? fmt::format("{:.1f} %", 100 * pair.noise) : "",
                   std::string(name(pair.change)), remark(pair)});
  }
  return table.is_empty() ? "" : table.render() + "\n";
}

std::string list_of(std::string_view heading, const std::vector<BenchFigure>& figures) {
  if (figures.empty()) return "";
  std::string text = fmt::format("{}:\n", heading);
  for (const BenchFigure& figure : figures) text += "  " + text_of(figure) + "\n";
  return text + "\n";
}

std::ptrdiff_t count(const Comparison& comparison, Change change) {
  return std::ranges::count(comparison.pairs, change, &FigurePair::change);
}

/// Figures that had a number and are not in the run after.
std::ptrdiff_t count_missing(const Comparison& comparison) {
  return std::ranges::count_if(comparison.only_before, &BenchFigure::has_numbers);
}

std::string summary(const Comparison& comparison) {
  const double ratio = comparison.median_ratio();
  return fmt::format(
      "{} in both runs: {} slower, {} faster, {} failed, {} skipped; {} only before, {} only "
      "after; {}, threshold {:g} %\n",
      comparison.pairs.size(), count(comparison, Change::slower), count(comparison, Change::faster),
      count(comparison, Change::failed), count(comparison, Change::skipped),
      comparison.only_before.size(), comparison.only_after.size(),
      ratio > 0 ? fmt::format("median ratio {:.3f}", ratio) : "no ratio",
      100 * comparison.threshold);
}

/// "worse: 1 slower, 2 missing after"; nothing when all is well.
std::string verdict(const Comparison& comparison) {
  std::vector<std::string> parts;
  const auto add = [&](std::ptrdiff_t figures, std::string_view what) {
    if (figures > 0) parts.push_back(fmt::format("{} {}", figures, what));
  };
  add(count(comparison, Change::slower), "slower");
  add(count(comparison, Change::failed), "failed after");
  add(count(comparison, Change::skipped), "skipped after");
  add(count_missing(comparison), "missing after");
  if (!comparison.is_after_complete) parts.emplace_back("the run after is not complete");
  return parts.empty() ? "" : fmt::format("worse: {}\n", fmt::join(parts, ", "));
}

}  // namespace

double noise_of(const BenchFigure& before, const BenchFigure& after) {
  return std::hypot(spread(before), spread(after));
}

std::string_view name(Change change) {
  switch (change) {
    case Change::none:
      return "";
    case Change::faster:
      return "faster";
    case Change::slower:
      return "slower";
    case Change::failed:
      return "failed";
    case Change::skipped:
      return "skipped";
  }
  return "unknown";
}

bool Comparison::is_worse() const {
  return !verdict(*this).empty();
}

double Comparison::median_ratio() const {
  std::vector<double> ratios;
  for (const FigurePair& pair : pairs)
    if (pair.ratio > 0) ratios.push_back(pair.ratio);
  if (ratios.empty()) return 0;
  std::ranges::sort(ratios);
  // The geometric mean of the middle two, so that swapped runs give the inverse.
  return std::sqrt(ratios[(ratios.size() - 1) / 2] * ratios[ratios.size() / 2]);
}

Comparison compare(const BenchRun& before, const BenchRun& after, double threshold) {
  if (!std::isfinite(threshold) || threshold < 0)
    throw Error(Errc::invalid_argument,
                fmt::format("a threshold of {}; it must be finite and at least 0", threshold));
  Comparison comparison;
  comparison.threshold = threshold;
  comparison.warnings = warnings_of(before, after);
  comparison.is_after_complete = after.complete;
  // Figures that a run holds twice are paired in their order.
  std::multimap<Identity, std::size_t> unpaired;
  for (std::size_t i = 0; i < after.figures.size(); ++i)
    unpaired.emplace(identity(after.figures[i]), i);
  for (const BenchFigure& figure : before.figures) {
    const auto found = unpaired.lower_bound(identity(figure));
    if (found == unpaired.end() || found->first != identity(figure)) {
      comparison.only_before.push_back(figure);
      continue;
    }
    comparison.pairs.push_back(pair_of(figure, after.figures[found->second], threshold));
    unpaired.erase(found);
  }
  std::vector<std::size_t> left;
  for (const auto& [figure, index] : unpaired) left.push_back(index);
  std::ranges::sort(left);
  for (const std::size_t index : left) comparison.only_after.push_back(after.figures[index]);
  return comparison;
}

std::string as_table(const Comparison& comparison) {
  std::string text;
  for (const std::string& warning : comparison.warnings) text += "warning: " + warning + "\n";
  if (!text.empty()) text += "\n";
  return text + table_of(comparison.pairs) + list_of("only before", comparison.only_before) +
         list_of("only after", comparison.only_after) + summary(comparison) + verdict(comparison);
}

}  // namespace iridium::cli
