#include "cli/line_prefixer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace iridium::cli {

LinePrefixer::LinePrefixer(std::string prefix, std::size_t longest_line)
    : prefix_(std::move(prefix)), longest_line_(std::max<std::size_t>(longest_line, 1)) {}

void LinePrefixer::feed(std::string_view bytes, std::string& output) {
  for (std::size_t newline; (newline = bytes.find('\n')) != std::string_view::npos;) {
    hold_back(bytes.substr(0, newline), output);
    end_line(output);
    bytes.remove_prefix(newline + 1);
  }
  hold_back(bytes, output);
}

void LinePrefixer::finish(std::string& output) {
  if (!unfinished_.empty()) end_line(output);
}

void LinePrefixer::hold_back(std::string_view bytes, std::string& output) {
  while (!bytes.empty()) {
    // A full piece leaves only when more of its line follows: a line of exactly this length is not
    // followed by an empty one.
    if (unfinished_.size() == longest_line_) end_line(output);
    const std::string_view part = bytes.substr(0, longest_line_ - unfinished_.size());
    unfinished_ += part;
    bytes.remove_prefix(part.size());
  }
}

void LinePrefixer::end_line(std::string& output) {
  output += prefix_;
  output += unfinished_;
  output += '\n';
  unfinished_.clear();
}

std::string rank_prefix(int rank, int size) {
  const std::size_t width = fmt::formatted_size("[{}] ", size - 1);
  return fmt::format("{:<{}}", fmt::format("[{}] ", rank), width);
}

}  // namespace iridium::cli
