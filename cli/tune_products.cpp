#include "cli/tune_products.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "cli/text_table.h"

namespace iridium::cli {
namespace {

using Figures = std::vector<const BenchFigure*>;
using ProductName = std::tuple<std::string, std::string, MatmulShape>;

std::map<ProductName, Figures> by_product(const std::vector<BenchFigure>& figures) {
  std::map<ProductName, Figures> products;
  for (const BenchFigure& figure : figures)
    if (figure.operation == product_operation && figure.contender == "iridium" &&
        figure.mode == "graph" && figure.shape)
      products[{figure.dtype, figure.layout, *figure.shape}].push_back(&figure);
  return products;
}

std::string text_of(const TunedProduct& tuned) {
  return fmt::format("{} {} {} {}", product_operation, tuned.dtype, tuned.layout,
                     name(tuned.shape));
}

bool has_time(const BenchFigure& figure) {
  return figure.has_numbers() && figure.median_us > 0;
}

/// Leaves `before` empty where `automatic` has no figure to compare others with.
void decide(TunedProduct& tuned, const Figures& figures) {
  const auto current = std::ranges::find_if(figures, [](const BenchFigure* figure) {
    return figure->algorithm == "automatic" && !figure->chosen.empty() && has_time(*figure);
  });
  if (current == figures.end()) return;
  tuned.before = tuned.after = (*current)->chosen;
  tuned.before_us = tuned.after_us = (*current)->median_us;
  for (const BenchFigure* figure : figures) {
    if (!has_time(*figure) || figure->algorithm == "automatic" || figure->algorithm == tuned.before)
      continue;
    const Gain gain = gain_of(*figure, **current);
    if (gain == Gain::unsteady) tuned.is_unsteady = true;
    if (gain != Gain::clear || figure->median_us >= tuned.after_us) continue;
    tuned.after = figure->algorithm;
    tuned.after_us = figure->median_us;
  }
}

/// What rows tell apart besides M.
auto group_of(const TunedProduct& tuned) {
  // Smaller matrices first: their rows would never be reached behind those of larger ones.
  return std::tuple(tuned.dtype, tuned.layout, tuned.shape.columns * tuned.shape.depth,
                    tuned.shape.columns);
}

double geometric_mean(const std::vector<TunedProduct>& products, double TunedProduct::* time) {
  double logarithms = 0;
  for (const TunedProduct& tuned : products) logarithms += std::log(tuned.*time);
  return std::exp(logarithms / static_cast<double>(products.size()));
}

/// The current choices of the row's products: mostly one.
std::string before_text(const TunedProductRow& row) {
  std::vector<std::string> names;
  for (const TunedProduct& tuned : row.products)
    if (std::ranges::find(names, tuned.before) == names.end()) names.push_back(tuned.before);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

TunedProducts decide_products(const std::vector<BenchFigure>& figures) {
  TunedProducts decided;
  for (const auto& [name, of_product] : by_product(figures)) {
    TunedProduct tuned;
    std::tie(tuned.dtype, tuned.layout, tuned.shape) = name;
    decide(tuned, of_product);
    if (tuned.is_unsteady)
      decided.notes.push_back(text_of(tuned) +
                              ": times were not steady; what may be faster is not taken");
    if (tuned.before.empty())
      decided.notes.push_back(text_of(tuned) + ": automatic has no figure; there is no row");
    else
      decided.products.push_back(std::move(tuned));
  }
  return decided;
}

std::vector<TunedProductRow> rows_of(std::vector<TunedProduct> products) {
  std::ranges::sort(products, {}, [](const TunedProduct& tuned) {
    return std::tuple(group_of(tuned), tuned.shape.rows);
  });
  std::vector<TunedProductRow> rows;
  for (std::size_t i = 0; i < products.size(); ++i) {
    const TunedProduct& tuned = products[i];
    const bool is_first = i == 0 || group_of(products[i - 1]) != group_of(tuned);
    if (is_first || rows.back().algorithm != tuned.after) {
      // What comes next tells where a row ends.
      if (!is_first)
        rows.back().most.rows = geometric_middle(products[i - 1].shape.rows, tuned.shape.rows);
      rows.push_back({.dtype = tuned.dtype,
                      .layout = tuned.layout,
                      .most = tuned.shape,
                      .algorithm = tuned.after});
    }
    rows.back().most.rows = tuned.shape.rows;
    rows.back().products.push_back(tuned);
  }
  return rows;
}

std::string table_text(const std::vector<TunedProductRow>& rows, const TunedDevice& device) {
  TextTable table({"# operation", "dtype", "layout", "device", "M", "N", "K", "algorithm"});
  for (const TunedProductRow& row : rows)
    table.add_row({std::string(product_operation), row.dtype, row.layout, device.word(),
                   bytes_word(row.most.rows), bytes_word(row.most.columns),
                   bytes_word(row.most.depth), row.algorithm});
  return table.is_empty() ? "" : table.render();
}

std::string summary_text(const std::vector<TunedProductRow>& rows) {
  TextTable table(
      {"operation", "dtype", "layout", "M", "N", "K", "before", "us", "after", "us", "ratio"});
  for (const TunedProductRow& row : rows) {
    const double before = geometric_mean(row.products, &TunedProduct::before_us);
    const double after = geometric_mean(row.products, &TunedProduct::after_us);
    table.add_row({std::string(product_operation), row.dtype, row.layout,
                   std::to_string(row.most.rows), std::to_string(row.most.columns),
                   std::to_string(row.most.depth), before_text(row), fmt::format("{:.2f}", before),
                   row.algorithm, fmt::format("{:.2f}", after),
                   fmt::format("{:.3f}", after / before)});
  }
  return table.is_empty() ? "" : table.render();
}

}  // namespace iridium::cli
