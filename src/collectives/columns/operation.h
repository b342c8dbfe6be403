#pragma once

#include "iridium/operations.h"

namespace iridium {

Operation all_gather_columns_operation();
Operation reduce_scatter_columns_operation();

}  // namespace iridium
