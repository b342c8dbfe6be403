#pragma once

#include <vector>

#include "iridium/operations.h"

namespace iridium {

std::vector<Operation> remote_memory_operations();

}  // namespace iridium
