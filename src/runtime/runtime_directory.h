// The private directory in which ranks meet.
#pragma once

#include <string>

namespace iridium {

/// IRIDIUM_RUNTIME_DIR or /tmp/iridium-UID, made with mode 0700 when missing. Throws `permission`
/// when it is somebody else's or open to others.
std::string runtime_directory();

}  // namespace iridium
