#pragma once

#include "iridium/operations.h"

namespace iridium {

Operation all_to_all_operation();

}  // namespace iridium
