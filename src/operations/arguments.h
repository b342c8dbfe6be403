// The arguments of the registry's cases.
#pragma once

#include <cstddef>
#include <string>

#include "iridium/operations.h"

namespace iridium {

/// The parameter's value as given, else its default.
std::string text_argument(const Arguments& arguments, const Parameter& parameter);
/// The same as a count. Throws `invalid_argument` for what is no number from 1 up.
std::size_t count_argument(const Arguments& arguments, const Parameter& parameter);

}  // namespace iridium
