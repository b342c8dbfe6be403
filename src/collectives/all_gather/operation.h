#pragma once

#include "iridium/operations.h"

namespace iridium {

Operation all_gather_operation();

}  // namespace iridium
