// Errors of the operating system as `Error`.
#pragma once

#include <string>

#include "iridium/errors.h"

namespace iridium {

/// Why a call failed with `code`, and what to do where descriptors have run out.
std::string system_reason(int code);

/// An `Error` that says what was tried and why errno says it failed.
Error system_error(const std::string& what);

/// A `system_error` that may be over soon: no descriptors are left, or no memory for them.
class Shortage final : public Error {
  using Error::Error;
};

/// Throws `system_error`, as a `Shortage` where it is one.
[[noreturn]] void throw_system_error(const std::string& what);

}  // namespace iridium
