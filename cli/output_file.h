// A file that a command writes at its end.
#pragma once

#include <string>
#include <string_view>

#include "cli/descriptor.h"

namespace iridium::cli {

/// A file that is written as a whole at the end, or not at all.
class OutputFile {
 public:
  /// Throws unless it can be written.
  explicit OutputFile(const std::string& path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  /// Once. Throws when that fails.
  void write(std::string_view text) const;

 private:
  [[noreturn]] void refuse() const;

  std::string path_;
  std::string part_;      ///< what is written first: nobody else's, whatever lies there
  bool has_name_ = true;  ///< `part_` lies in its folder
  Descriptor file_;
};

}  // namespace iridium::cli
