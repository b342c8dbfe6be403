// A file of its own: the definitions are paths of this checkout, so no other finds its object in a
// cache.
#include "programs.h"

namespace iridium::cli {

std::string command_line_path() {
  return IRIDIUM_CLI_PATH;
}
std::string fake_mps_control_path() {
  return FAKE_MPS_CONTROL_PATH;
}

}  // namespace iridium::cli
