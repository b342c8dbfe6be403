#include "support/resources.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/system_error.h"

namespace iridium::test {

std::vector<std::string> files_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename());
  return names;
}

std::size_t open_descriptors() {
  return files_in("/proc/self/fd").size();
}
std::size_t threads() {
  return files_in("/proc/self/task").size();
}

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

std::size_t segment_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find("iridium-segment") != std::string::npos) ++count;
  return count;
}

DescriptorLimit::DescriptorLimit(int more) {
  const int next = ::dup(STDIN_FILENO);
  ::close(next);
  ::rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  before_ = limit.rlim_cur;
  limit.rlim_cur = static_cast<rlim_t>(next) + static_cast<rlim_t>(more);
  if (next < 0 || ::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    throw system_error("cannot limit the descriptors");
}

DescriptorLimit::~DescriptorLimit() {
  ::rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = before_;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

TemporaryDirectory::TemporaryDirectory() : path_("/tmp/iridium-test-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) throw system_error("mkdtemp");
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TemporaryDirectory::plant(const std::string& file, const std::string& text) const {
  const std::filesystem::path path = std::filesystem::path(path_) / file;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

ScopedRuntimeDirectory::ScopedRuntimeDirectory() {
  ::setenv("IRIDIUM_RUNTIME_DIR", path().c_str(), 1);
}

ScopedRuntimeDirectory::~ScopedRuntimeDirectory() {
  ::unsetenv("IRIDIUM_RUNTIME_DIR");
}

}  // namespace iridium::test
