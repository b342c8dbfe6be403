// A file through which ranks tell the command that started them what they found.
#pragma once

#include <string>

#include "cli/descriptor.h"

namespace iridium::cli {

/// An empty file in memory. Processes that this one has started can open it while it lives; it has
/// no name in any folder, so that nothing of it stays, however this process ends.
class TemporaryFile {
 public:
  /// `name` is for people who look at this process's descriptors.
  explicit TemporaryFile(const std::string& name);

  const std::string& path() const { return path_; }

 private:
  Descriptor file_;
  std::string path_;
};

}  // namespace iridium::cli
