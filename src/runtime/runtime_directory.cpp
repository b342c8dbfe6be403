#include "runtime/runtime_directory.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/settings.h"
#include "base/system_error.h"

namespace iridium {

std::string runtime_directory() {
  std::string path = runtime_dir_setting(process_environment);
  if (path.empty()) path = fmt::format("/tmp/iridium-{}", ::geteuid());
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    throw system_error(fmt::format("cannot make the directory {} ({} chooses another)", path,
                                   variables::runtime_dir));
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0) throw system_error("cannot look at " + path);
  if (!S_ISDIR(status.st_mode))
    throw Error(Errc::permission, fmt::format("{} is not a directory ({} chooses another)", path,
                                              variables::runtime_dir));
  if (status.st_uid != ::geteuid())
    throw Error(Errc::permission,
                fmt::format("{} belongs to user {}, not to user {} ({} chooses another)", path,
                            status.st_uid, ::geteuid(), variables::runtime_dir));
  if ((status.st_mode & 077) != 0)
    throw Error(Errc::permission,
                fmt::format("{} has mode {:04o}: others may enter; it must be 0700", path,
                            status.st_mode & 07777));
  return path;
}

}  // namespace iridium
