#pragma once

#include "iridium/operations.h"

namespace iridium {

Operation device_barrier_operation();

}  // namespace iridium
