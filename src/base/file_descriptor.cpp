#include "base/file_descriptor.h"

#include <unistd.h>

namespace iridium {

void FileDescriptor::reset() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

}  // namespace iridium
