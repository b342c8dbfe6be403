// What a process holds, to find leaks.
#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <string>
#include <vector>

namespace iridium::test {

std::size_t open_descriptors();
/// Mappings of Iridium's segments in this process.
std::size_t segment_mappings();
/// All mappings of this process.
std::size_t mappings();
std::size_t threads();
/// Names in a directory.
std::vector<std::string> files_in(const std::string& directory);

/// Leaves this process so many descriptors more than it has open, while it lives.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(int more);
  ~DescriptorLimit();
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlim_t before_ = 0;
};

/// A private directory, removed with what is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  /// Writes a file below it, and makes the directories in between.
  void plant(const std::string& file, const std::string& text) const;

 private:
  std::string path_;
};

/// A private directory, set as IRIDIUM_RUNTIME_DIR for this process and its children while the
/// object lives.
class ScopedRuntimeDirectory {
 public:
  ScopedRuntimeDirectory();
  ~ScopedRuntimeDirectory();
  ScopedRuntimeDirectory(const ScopedRuntimeDirectory&) = delete;
  ScopedRuntimeDirectory& operator=(const ScopedRuntimeDirectory&) = delete;

  const std::string& path() const { return directory_.path(); }

 private:
  const TemporaryDirectory directory_;
};

}  // namespace iridium::test
