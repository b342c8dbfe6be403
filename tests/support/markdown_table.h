// Tables of the documentation that tests hold to be true.
#pragma once

#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace iridium::test {

inline std::string without_spaces_around(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// The rows of the first table behind the line `heading` of a Markdown file: the first cell, and
/// the cells after it. Throws when there is no such table.
inline std::map<std::string, std::vector<std::string>> read_table(const std::string& path,
                                                                  const std::string& heading) {
  std::map<std::string, std::vector<std::string>> rows;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line) && line != heading) {
  }
  for (int number = 0; std::getline(file, line);) {
    if (!line.starts_with('|')) {
      if (number > 0) break;
      continue;
    }
    if (++number <= 2) continue;  // the head, and the line below it
    std::vector<std::string> cells;
    std::istringstream text(line.substr(1));
    for (std::string cell; std::getline(text, cell, '|');)
      cells.push_back(without_spaces_around(cell));
    const std::string name = cells.at(0);
    cells.erase(cells.begin());
    if (!rows.emplace(name, std::move(cells)).second)
      throw std::runtime_error(std::string(path).append(" has two rows of ").append(name));
  }
  if (rows.empty()) throw std::runtime_error(path + " has no table under " + heading);
  return rows;
}

}  // namespace iridium::test
