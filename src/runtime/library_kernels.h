// The kernels of the library's own operations, to be loaded when a context is made.
#pragma once

#include <vector>

#include "iridium/device/kernel.h"

namespace iridium {

using KernelList = std::vector<const detail::KernelEntry*>;

/// Defined beside the operations, which are a layer above.
const KernelList& library_kernels();

}  // namespace iridium
