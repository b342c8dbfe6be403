#include "cli/temporary_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "iridium/errors.h"

namespace iridium::cli {

TemporaryFile::TemporaryFile(const std::string& name) {
  std::error_code problem;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(problem);
  if (problem)
    throw Error(Errc::system, "TMPDIR names no folder for temporary files: " + problem.message());
  path_ = (folder / (name + "-XXXXXX")).string();
  const int descriptor = ::mkstemp(path_.data());
  if (descriptor < 0)
    throw Error(Errc::system, fmt::format("cannot make a file like {}: {}", path_,
                                          std::generic_category().message(errno)));
  ::close(descriptor);
}

TemporaryFile::~TemporaryFile() {
  ::unlink(path_.c_str());
}

}  // namespace iridium::cli
