// Puts a prefix in front of every line of a byte stream.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace iridium::cli {

/// Cuts bytes into lines and puts a prefix in front of each. Only whole lines come out, so that
/// lines of several streams can be put one after another. Holds at most `longest_line` bytes back:
/// a longer line comes out in pieces of that size, each with a prefix and a newline of its own.
class LinePrefixer {
 public:
  static constexpr std::size_t default_longest_line = 64u << 10;

  explicit LinePrefixer(std::string prefix, std::size_t longest_line = default_longest_line);

  /// Takes the next bytes and appends the lines they complete to `output`.
  void feed(std::string_view bytes, std::string& output);
  /// Appends a last line that has no newline, with one.
  void finish(std::string& output);

 private:
  void hold_back(std::string_view bytes, std::string& output);
  void end_line(std::string& output);

  std::string prefix_;
  std::size_t longest_line_;
  std::string unfinished_;
};

/// "[3] ", padded to the width of the widest rank of a job of `size` ranks.
std::string rank_prefix(int rank, int size);

}  // namespace iridium::cli
