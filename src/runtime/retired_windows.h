// Windows whose heap is gone while streams still work on them. Unmapping at once would break that
// work, and waiting would block a destructor.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "runtime/stream_registry.h"

namespace iridium {

/// Drops the window once the work submitted to `streams` so far is done: now, or at a later call of
/// this function or the next.
void retire(std::shared_ptr<Window> window, std::shared_ptr<StreamRegistry> streams);

/// Drops those retired windows whose work is done.
void sweep_retired_windows();

}  // namespace iridium
