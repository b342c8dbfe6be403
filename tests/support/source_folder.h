// Where the sources are that the tests were built from.
#pragma once

#include <string>

namespace iridium::test {

/// The path of a file, named from the top of the checkout.
std::string source_file(const std::string& name);

}  // namespace iridium::test
