#pragma once

#include "iridium/operations.h"

namespace iridium {

Operation broadcast_operation();

}  // namespace iridium
