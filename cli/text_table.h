// Aligned columns of text.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace iridium::cli {

/// Rows under a heading, columns two spaces apart and as wide as they need to be.
class TextTable {
 public:
  using Row = std::vector<std::string>;

  explicit TextTable(Row heading) : rows_{std::move(heading)} {}

  /// Adds a row with as many cells as the heading has.
  void add_row(Row row);
  bool is_empty() const { return rows_.size() == 1; }
  /// Every row as a line, the heading first.
  std::string render() const;

 private:
  std::vector<Row> rows_;
};

}  // namespace iridium::cli
