#pragma once

#include "iridium/operations.h"

namespace iridium {

Operation all_reduce_operation();

}  // namespace iridium
