#include "backend/cuda/mps.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/file_descriptor.h"

namespace iridium {
namespace {

bool is_listening(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int status =
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return status == 0 || errno == EAGAIN;
}

}  // namespace

std::string mps_directory() {
  const char* directory = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  return directory != nullptr ? directory : "/tmp/nvidia-mps";
}

std::string object_to_mps_daemon(const std::string& directory, uid_t user) {
  const std::string control = directory + "/control";
  struct stat status = {};
  if (::stat(control.c_str(), &status) != 0 || status.st_uid == user || status.st_uid == 0)
    return {};
  if (!is_listening(control)) return {};
  return fmt::format(
      "the MPS daemon in {} belongs to user {}, not to user {}: set CUDA_MPS_PIPE_DIRECTORY to "
      "one's own, or to an empty directory to do without",
      directory, status.st_uid, user);
}

}  // namespace iridium
