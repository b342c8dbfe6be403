// Windows whose heap is gone while streams still work on them. Unmapping at once would break that
// work, and waiting would block a destructor.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"

namespace iridium {

bool all_reached(const std::vector<std::shared_ptr<const Marker>>& work);

/// Drops the window once `work` is done: now, or at a later call of this function.
void retire(std::shared_ptr<Window> window, std::vector<std::shared_ptr<const Marker>> work);

}  // namespace iridium
