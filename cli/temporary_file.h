// A file through which ranks tell the command that started them what they found.
#pragma once

#include <string>

namespace iridium::cli {

/// An empty file in the folder for such things, gone when this object goes.
class TemporaryFile {
 public:
  /// `name` is how the file's name begins.
  explicit TemporaryFile(const std::string& name);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace iridium::cli
