// The library's version; ranks of one team must agree on it.
#pragma once

#define IR_VERSION "0.1.0"

namespace iridium {

/// The version of the library that is linked, "major.minor.patch".
const char* version();

}  // namespace iridium
