#pragma once

#include <vector>

#include "iridium/operations.h"

namespace iridium {

std::vector<Operation> signal_operations();

}  // namespace iridium
