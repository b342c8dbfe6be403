// Programs of the build folder that tests start.
#pragma once

#include <string>

namespace iridium::cli {

std::string command_line_path();
std::string fake_mps_control_path();

}  // namespace iridium::cli
