// The command line as a whole.
#pragma once

#include <string>
#include <vector>

namespace iridium::cli {

/// The status where something of the command line means nothing.
inline constexpr int usage_error_status = 2;

/// Runs the subcommand that `arguments` (without the name of the program) ask for, and returns the
/// status to exit with: 2 when they cannot be understood.
int run_command_line(const std::vector<std::string>& arguments);

/// Writes to standard output; throws when that fails.
void print(const std::string& text);

}  // namespace iridium::cli
