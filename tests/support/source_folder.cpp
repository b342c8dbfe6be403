// A file of its own: the definition is a path of this checkout, so no other finds its object in a
// cache.
#include "support/source_folder.h"

namespace iridium::test {

std::string source_file(const std::string& name) {
  return std::string(IRIDIUM_SOURCE_DIR "/").append(name);
}

}  // namespace iridium::test
