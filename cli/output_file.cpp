#include "cli/output_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "iridium/errors.h"

namespace iridium::cli {

OutputFile::OutputFile(const std::string& path) : path_(std::filesystem::weakly_canonical(path)) {
  if (std::filesystem::exists(path_) && !std::filesystem::is_regular_file(path_))
    throw Error(Errc::system, fmt::format("cannot write to {}: it is no file", path));
  std::ofstream file(part());
  if (!file) refuse();
}

OutputFile::~OutputFile() {
  std::error_code ignored;
  std::filesystem::remove(part(), ignored);
}

void OutputFile::write(const std::string& text) const {
  std::ofstream file(part());
  file << text;
  file.close();
  if (!file || std::rename(part().c_str(), path_.c_str()) != 0) refuse();
}

void OutputFile::refuse() const {
  throw Error(Errc::system,
              fmt::format("cannot write to {}: {}", path_, std::generic_category().message(errno)));
}

}  // namespace iridium::cli
