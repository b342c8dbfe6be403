#pragma once

#include <vector>

#include "iridium/operations.h"

namespace iridium {

/// Host calls that wait for other ranks or change the heap, each as an operation of the registry.
std::vector<Operation> host_call_operations();

}  // namespace iridium
