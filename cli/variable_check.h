// Environment variables that nobody reads.
#pragma once

#include <string>
#include <vector>

namespace iridium::cli {

/// A line for every variable of `environment` ("NAME=value" each) that begins like a setting's and
/// is almost one, but none: somebody thinks that it does something.
std::vector<std::string> misspelt_settings(const std::vector<std::string>& environment);

}  // namespace iridium::cli
