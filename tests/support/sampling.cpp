#include "support/sampling.h"

#include <cstdlib>
#include <string_view>

#include "support/sanitizers.h"

namespace iridium::test {
namespace {

/// Odd, so that it hits all values of parameters that have two or four.
std::size_t every(int ranks) {
  if (ranks < 4) return under_sanitizer ? 3 : 1;
  if (ranks < 8) return under_sanitizer ? 7 : 3;
  return under_sanitizer ? 15 : 5;
}

}  // namespace

bool is_full_run() {
  const char* const value = std::getenv("IRIDIUM_TEST_FULL");
  return value != nullptr && std::string_view(value) == "1";
}

Sample::Sample(int ranks) : every_(is_full_run() ? 1 : every(ranks)) {}

}  // namespace iridium::test
