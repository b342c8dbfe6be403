#include "cli/tune_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "cli/bench_axes.h"
#include "cli/bench_compare.h"
#include "cli/text_table.h"

namespace iridium::cli {
namespace {

/// What another choice must gain at least, so that tables of two runs are alike.
constexpr double least_gain = 0.03;

using Figures = std::vector<const BenchFigure*>;
using CaseName = std::tuple<std::string, std::string, int, std::size_t>;

/// Those that decide, by what a row can tell apart.
std::map<CaseName, Figures> by_case(const std::vector<BenchFigure>& figures) {
  std::map<CaseName, Figures> cases;
  for (const BenchFigure& figure : figures)
    if (figure.contender == "iridium" && figure.mode == "graph" && figure.ranks > 1 &&
        !figure.shape)
      cases[{figure.operation, figure.memory, figure.ranks,
             largest_buffer(figure.operation, figure.bytes, figure.ranks)}]
          .push_back(&figure);
  return cases;
}

/// What a row says that brings the figure about: what was left to the table stays as it is there.
Choice choice_of(const BenchFigure& figure, const Choice& current) {
  Choice choice = current;
  if (!figure.algorithm.empty() && figure.algorithm != "automatic")
    choice.algorithm = figure.algorithm;
  if (figure.blocks != 0) choice.blocks = figure.blocks;
  if (figure.tile != 0) choice.tile = figure.tile;
  return choice;
}

struct Timed {
  Choice choice;
  const BenchFigure* figure;

  double microseconds() const { return figure->median_us; }
};

/// Every choice that was measured in the case, once.
std::vector<Timed> timed_choices(const Figures& figures, const TunedCase& tuned) {
  std::vector<Timed> timed;
  for (const BenchFigure* figure : figures) {
    if (!figure->has_numbers() || figure->median_us <= 0) continue;
    const Choice choice = choice_of(*figure, tuned.before);
    if (figure->blocks > useful_blocks(tuned.bytes, choice.algorithm)) continue;
    const auto same = std::ranges::find(timed, choice, &Timed::choice);
    if (same == timed.end())
      timed.push_back({choice, figure});
    else if (figure->median_us < same->microseconds())
      same->figure = figure;
  }
  return timed;
}

/// Leaves the case as it is where the current choice has no figure to compare others with.
void decide(TunedCase& tuned, const Figures& figures) {
  const std::vector<Timed> timed = timed_choices(figures, tuned);
  const auto current = std::ranges::find(timed, tuned.before, &Timed::choice);
  if (current == timed.end()) return;
  const Timed* best = &*current;
  for (const Timed& other : timed) {
    const Gain gain = gain_of(*other.figure, *current->figure);
    if (gain == Gain::unsteady) tuned.is_unsteady = true;
    if (gain == Gain::clear && other.microseconds() < best->microseconds()) best = &other;
  }
  tuned.after = best->choice;
  tuned.before_us = current->microseconds();
  tuned.after_us = best->microseconds();
}

/// The ranks' link.
Link link_of(const Figures& figures) {
  Link worst = Link::shared;
  for (const BenchFigure* figure : figures) worst = std::max(worst, figure->link);
  return worst;
}

std::string case_text(const TunedCase& tuned) {
  return fmt::format("{} {}, {} ranks, {}{}", tuned.operation, tuned.memory, tuned.members,
                     size_text(tuned.bytes),
                     tuned.link == Link::shared ? "" : fmt::format(", {}", name(tuned.link)));
}

/// Why figures are missing, each reason once with how often it was given.
void add_reasons(std::vector<std::string>& notes, const std::vector<BenchFigure>& figures) {
  std::map<std::string, int> counts;
  for (const BenchFigure& figure : figures)
    if (figure.mode == "graph" && !figure.has_numbers())
      ++counts[fmt::format("{} {}: {}", figure.operation,
                           figure.failed.empty() ? "skipped" : "failed",
                           figure.failed.empty() ? figure.skipped : figure.failed)];
  for (const auto& [reason, count] : counts)
    notes.push_back(
        fmt::format("{} {}", reason, count == 1 ? "(once)" : fmt::format("({} times)", count)));
}

std::string limit_word(const std::optional<int>& limit) {
  return limit ? std::to_string(*limit) : "*";
}
std::string limit_word(const std::optional<std::size_t>& limit) {
  return limit ? bytes_word(*limit) : "*";
}

/// What rows tell apart by words.
using Group = std::tuple<std::string, std::string, std::string>;
Group group_of(const TunedCase& tuned) {
  return {tuned.operation, tuned.memory, std::string(tuning_link(tuned.link))};
}

/// Operations on a kind of memory and a link of which no case was decided.
void drop_unknown(std::vector<TunedCase>& cases) {
  std::vector<Group> known;
  for (const TunedCase& tuned : cases)
    if (tuned.before_us > 0) known.push_back(group_of(tuned));
  std::erase_if(cases, [&](const TunedCase& tuned) {
    return std::ranges::find(known, group_of(tuned)) == known.end();
  });
}

double geometric_mean(const std::vector<TunedCase>& cases, double TunedCase::* time) {
  double logarithms = 0;
  int count = 0;
  for (const TunedCase& tuned : cases)
    if (tuned.*time > 0) {
      logarithms += std::log(tuned.*time);
      ++count;
    }
  return count == 0 ? 0 : std::exp(logarithms / count);
}

/// The current choices of the row's cases: mostly one.
std::string before_text(const TunedRow& row) {
  std::vector<std::string> texts;
  for (const TunedCase& tuned : row.cases) {
    const std::string text =
        fmt::format("{} {} {}", tuned.before.algorithm, tuned.before.blocks, tuned.before.tile);
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

std::vector<std::string> tuned_operations() {
  return {"all_gather", "all_reduce", "all_to_all", "broadcast", "reduce_scatter"};
}

std::size_t largest_buffer(const std::string& operation, std::size_t bytes, int members) {
  return operation == "all_gather" ? bytes * static_cast<std::size_t>(members) : bytes;
}

Gain gain_of(const BenchFigure& other, const BenchFigure& current) {
  const double least = std::max(least_gain, noise_of(current, other));
  if (current.median_us <= (1 + least) * other.median_us) return Gain::none;
  return other.p90_us >= current.p10_us ? Gain::unsteady : Gain::clear;
}

TunedCases decide(const std::vector<BenchFigure>& figures, const TunedDevice& device,
                  const TuningTable& current) {
  TunedCases decided;
  for (const auto& [name, of_case] : by_case(figures)) {
    TunedCase tuned;
    std::tie(tuned.operation, tuned.memory, tuned.members, tuned.bytes) = name;
    tuned.link = link_of(of_case);
    tuned.before = tuned.after = current.choose({.operation = tuned.operation,
                                                 .symmetric = tuned.memory == "symmetric",
                                                 .backend = device.backend,
                                                 .device = device.name,
                                                 .members = tuned.members,
                                                 .bytes = tuned.bytes,
                                                 .link = tuned.link});
    decide(tuned, of_case);
    if (tuned.before_us == 0)
      decided.notes.push_back(case_text(tuned) + ": the current choice has no figure; it stays");
    if (tuned.is_unsteady)
      decided.notes.push_back(case_text(tuned) +
                              ": times were not steady; what may be faster is not taken");
    decided.cases.push_back(std::move(tuned));
  }
  add_reasons(decided.notes, figures);
  return decided;
}

std::vector<TunedRow> rows_of(std::vector<TunedCase> cases) {
  drop_unknown(cases);
  std::ranges::sort(cases, {}, [](const TunedCase& tuned) {
    return std::tuple(group_of(tuned), tuned.members, tuned.bytes);
  });
  std::vector<TunedRow> rows;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const TunedCase& tuned = cases[i];
    const bool is_first = i == 0 || group_of(cases[i - 1]) != group_of(tuned) ||
                          cases[i - 1].members != tuned.members;
    if (is_first || rows.back().choice != tuned.after) {
      // What comes next tells where a row ends.
      if (!is_first) rows.back().bytes = geometric_middle(cases[i - 1].bytes, tuned.bytes);
      rows.push_back({.operation = tuned.operation,
                      .memory = tuned.memory,
                      .link = std::string(tuning_link(tuned.link)),
                      .members = tuned.members,
                      .choice = tuned.after});
    }
    rows.back().cases.push_back(tuned);
  }
  for (TunedRow& row : rows) {
    const bool is_last = std::ranges::none_of(cases, [&](const TunedCase& tuned) {
      return group_of(tuned) == group_of(row.cases[0]) && tuned.members > row.cases[0].members;
    });
    if (is_last) row.members.reset();
  }
  return rows;
}

std::string comment_lines(const std::vector<std::string>& comments) {
  std::string text;
  for (std::string comment : comments) {
    std::ranges::replace(comment, '\n', ' ');
    text += fmt::format("# {}\n", comment);
  }
  return text;
}

std::string table_text(const std::vector<TunedRow>& rows, const TunedDevice& device) {
  TextTable table({"# operation", "memory", "device", "link", "members", "bytes", "algorithm",
                   "blocks", "tile", "round"});
  for (const TunedRow& row : rows)
    table.add_row({row.operation, row.memory, device.word(), row.link, limit_word(row.members),
                   limit_word(row.bytes), row.choice.algorithm, std::to_string(row.choice.blocks),
                   std::to_string(row.choice.tile), bytes_word(row.choice.round_bytes)});
  return table.is_empty() ? "" : table.render();
}

std::string summary_text(const std::vector<TunedRow>& rows) {
  TextTable table(
      {"operation", "memory", "link", "members", "bytes", "before", "us", "after", "us", "ratio"});
  for (const TunedRow& row : rows) {
    const double before = geometric_mean(row.cases, &TunedCase::before_us);
    const double after = geometric_mean(row.cases, &TunedCase::after_us);
    const bool is_known = before > 0;
    table.add_row(
        {row.operation, row.memory, row.link, limit_word(row.members), limit_word(row.bytes),
         before_text(row), is_known ? fmt::format("{:.2f}", before) : "",
         fmt::format("{} {} {}", row.choice.algorithm, row.choice.blocks, row.choice.tile),
         is_known ? fmt::format("{:.2f}", after) : "",
         is_known ? fmt::format("{:.3f}", after / before) : ""});
  }
  return table.is_empty() ? "" : table.render();
}

std::string bytes_word(std::size_t bytes) {
  constexpr std::string_view units = "KMGT";
  std::size_t unit = 0;
  for (; bytes != 0 && bytes % 1024 == 0 && unit < units.size(); ++unit) bytes /= 1024;
  return fmt::format("{}{}", bytes, unit == 0 ? "" : std::string(1, units[unit - 1]));
}

std::size_t geometric_middle(std::size_t a, std::size_t b) {
  const double middle = std::sqrt(static_cast<double>(a)) * std::sqrt(static_cast<double>(b));
  return static_cast<std::size_t>(std::llround(middle));
}

}  // namespace iridium::cli
