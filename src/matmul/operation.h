// The registry's case of matrix products.
#pragma once

#include "iridium/operations.h"

namespace iridium {

Operation matmul_operation();

}  // namespace iridium
