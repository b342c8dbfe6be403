// A file that a command writes at its end.
#pragma once

#include <string>

namespace iridium::cli {

/// A file that is written as a whole at the end, or not at all.
class OutputFile {
 public:
  /// Throws unless it can be written.
  explicit OutputFile(const std::string& path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  /// Throws when that fails.
  void write(const std::string& text) const;

 private:
  std::string part() const { return path_ + ".part"; }
  [[noreturn]] void refuse() const;

  std::string path_;
};

}  // namespace iridium::cli
