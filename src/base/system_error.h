// Errors of the operating system as `Error`.
#pragma once

#include <string>

#include "iridium/errors.h"

namespace iridium {

/// An `Error` that says what was tried and why errno says it failed.
Error system_error(const std::string& what);

}  // namespace iridium
