#include "cli/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "iridium/errors.h"

namespace iridium::cli {
namespace {

/// How many letters must be changed, added or dropped.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t k = 1; k <= b.size(); ++k) {
      const std::size_t changed = diagonal + (a[i - 1] == b[k - 1] ? 0 : 1);
      diagonal = row[k];
      row[k] = std::min({changed, row[k] + 1, row[k - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> nearest_names(std::string_view word,
                                       const std::vector<std::string>& names) {
  std::vector<std::pair<std::size_t, std::string>> by_distance;
  const std::size_t limit = std::max<std::size_t>(2, word.size() / 3);
  for (const std::string& name : names) {
    const std::size_t letters = distance(word, name);
    if (letters <= limit || name.find(word) != std::string::npos)
      by_distance.emplace_back(letters, name);
  }
  std::ranges::sort(by_distance);
  std::vector<std::string> nearest;
  for (const auto& [letters, name] : by_distance) nearest.push_back(name);
  return nearest;
}

void refuse_name(std::string_view kind, std::string_view name,
                 const std::vector<std::string>& known) {
  const std::vector<std::string> near = nearest_names(name, known);
  throw Error(Errc::invalid_argument, near.empty()
                                          ? fmt::format("there is no {} '{}'; there are {}", kind,
                                                        name, fmt::join(known, ", "))
                                          : fmt::format("there is no {} '{}'; did you mean {}?",
                                                        kind, name, fmt::join(near, ", ")));
}

}  // namespace iridium::cli
