#include "cli/temporary_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace iridium::cli {

TemporaryFile::TemporaryFile(const std::string& name)
    : file_(::memfd_create(name.c_str(), MFD_CLOEXEC)) {
  if (!file_.is_open()) throw_system_error("cannot make a temporary file");
  path_ = fmt::format("/proc/{}/fd/{}", ::getpid(), file_.number());
}

}  // namespace iridium::cli
