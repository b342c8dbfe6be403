// Linked into every test program: gives it and the processes it starts timeouts of 30 s, unless the
// environment has others.
#include <cstdlib>

#include "base/settings.h"

namespace iridium {
namespace {

[[maybe_unused]] const bool are_set = [] {
  for (const char* variable : {variables::timeout, variables::construction_timeout})
    ::setenv(variable, "30", 0);
  return true;
}();

}  // namespace
}  // namespace iridium
