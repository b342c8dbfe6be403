#include "cli/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "iridium/errors.h"

namespace iridium::cli {

void Descriptor::reset() noexcept {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_system_error("cannot make a pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

void throw_system_error(const std::string& what) {
  throw Error(Errc::system, what + ": " + std::generic_category().message(errno));
}

void open_standard_descriptors() {
  int lowest_free = 0;
  do {
    lowest_free = ::open("/dev/null", O_RDWR);
    if (lowest_free < 0) throw_system_error("cannot open /dev/null");
  } while (lowest_free <= STDERR_FILENO);
  ::close(lowest_free);
}

}  // namespace iridium::cli
