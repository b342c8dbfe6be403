#pragma once

#include "iridium/operations.h"

namespace iridium {

Operation reduce_scatter_operation();

}  // namespace iridium
