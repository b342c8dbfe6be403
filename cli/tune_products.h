// From the figures of `iridium tune matmul` to the rows of a tuning table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/bench_results.h"
#include "cli/tune_rows.h"
#include "iridium/matmul_shape.h"

namespace iridium::cli {

/// The operation whose rows have shapes.
inline constexpr std::string_view product_operation = "matmul";

/// What the figures of one product say.
struct TunedProduct {
  std::string dtype;
  std::string layout;
  MatmulShape shape;
  std::string before;  ///< what the current table and the estimate choose
  std::string after;
  double before_us = 0;
  double after_us = 0;
  bool is_unsteady = false;  ///< a lower median was not taken: samples of both overlap
};

/// Products, and what they leave out.
struct TunedProducts {
  std::vector<TunedProduct> products;
  std::vector<std::string> notes;  ///< for people, a line each
};

/// Decides every product that the figures are about, by the replays that have a right result:
/// another algorithm than that of `automatic` must be a clear gain. A product of which `automatic`
/// has no figure is left out.
TunedProducts decide_products(const std::vector<BenchFigure>& figures);

/// A row, and the products it was made from.
struct TunedProductRow {
  std::string dtype;
  std::string layout;
  MatmulShape most;
  std::string algorithm;
  std::vector<TunedProduct> products = {};
};

/// Rows in the order in which a table needs them. Those of one N and K follow each other by M.
/// Neighbouring M with the same algorithm share one; between two M that do not, the limit is their
/// geometric middle. Nothing is said of products larger than those measured.
std::vector<TunedProductRow> rows_of(std::vector<TunedProduct> products);

/// The rows as lines of a table; empty without rows.
std::string table_text(const std::vector<TunedProductRow>& rows, const TunedDevice& device);
/// For people: how long products take with the current choice and with the rows (geometric means
/// over what was measured); empty without rows.
std::string summary_text(const std::vector<TunedProductRow>& rows);

}  // namespace iridium::cli
