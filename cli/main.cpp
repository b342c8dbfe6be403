#include <exception>
#include <iostream>

#include "cli/command_line.h"
#include "cli/descriptor.h"
#include "iridium/errors.h"

int main(int argument_count, char** arguments) {
  try {
    iridium::cli::open_standard_descriptors();
    return iridium::cli::run_command_line({arguments + 1, arguments + argument_count});
  } catch (const iridium::Error& error) {
    std::cerr << "iridium: " << error.what() << "\n";
    return error.code() == iridium::Errc::invalid_argument ? iridium::cli::usage_error_status : 1;
  } catch (const std::exception& error) {
    std::cerr << "iridium: " << error.what() << "\n";
    return 1;
  }
}
