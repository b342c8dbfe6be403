#include "cli/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <system_error>

#include "iridium/errors.h"

namespace iridium::cli {

OutputFile::OutputFile(const std::string& path) : path_(path) {
  std::error_code problem;
  const std::filesystem::path target = std::filesystem::weakly_canonical(path, problem);
  const auto kind =
      problem ? std::filesystem::file_type::none : std::filesystem::status(target, problem).type();
  if (kind == std::filesystem::file_type::none) {
    errno = problem.value();
    refuse();
  }
  if (kind != std::filesystem::file_type::not_found && kind != std::filesystem::file_type::regular)
    throw Error(Errc::system, fmt::format("cannot write to {}: it is no file", path));
  path_ = target;
  part_ = fmt::format("{}.{:08x}.part", path_, std::random_device()());
  // Without a name, so that nothing stays of it, however this process ends.
  const std::filesystem::path folder = std::filesystem::absolute(path_, problem).parent_path();
  file_ = Descriptor(::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666));
  has_name_ = !file_.is_open();
  // Not every file system can do that.
  if (has_name_)
    file_ = Descriptor(
        ::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file_.is_open()) refuse();
}

OutputFile::~OutputFile() {
  if (file_.is_open() && has_name_) ::unlink(part_.c_str());
}

void OutputFile::write(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t written = ::write(file_.number(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse();
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(file_.number()) != 0) refuse();
  if (!has_name_) {
    const std::string unnamed = fmt::format("/proc/self/fd/{}", file_.number());
    if (::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, part_.c_str(), AT_SYMLINK_FOLLOW) != 0)
      refuse();
  }
  if (std::rename(part_.c_str(), path_.c_str()) == 0) return;
  const int reason = errno;
  ::unlink(part_.c_str());
  errno = reason;
  refuse();
}

void OutputFile::refuse() const {
  throw_system_error("cannot write to " + path_);
}

}  // namespace iridium::cli
