#include "cli/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "iridium/errors.h"

namespace iridium::cli {

void TextTable::add_row(Row row) {
  if (row.size() != rows_[0].size())
    throw Error(Errc::invalid_argument, fmt::format("a row of {} cells in a table of {} columns",
                                                    row.size(), rows_[0].size()));
  rows_.push_back(std::move(row));
}

std::string TextTable::render() const {
  std::vector<std::size_t> widths(rows_[0].size());
  for (const Row& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Row& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += fmt::format("{:<{}}", row[i], widths[i] + 2);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace iridium::cli
