#pragma once

#include "iridium/operations.h"

namespace iridium {

Operation all_to_all_operation();
/// With parts of different sizes.
Operation all_to_all_parts_operation();

}  // namespace iridium
