#pragma once

#include <vector>

#include "iridium/operations.h"

namespace iridium {

/// Plain copies within a rank's memory, as operations of the registry.
std::vector<Operation> copy_limit_operations();

}  // namespace iridium
