// A barrier between the streams of a team.
#pragma once

#include "iridium/stream.h"
#include "iridium/team.h"

namespace iridium {

/// Work queued on `stream` after this runs when every member's stream has got here: what any
/// member's stream wrote before, all see after. Returns at once; the host waits for nothing. Can be
/// captured, replayed and mixed with eager calls. Collective over the team, in the same order as
/// its other operations. Throws `not_a_member` on other ranks, and the reason when the team has
/// failed. A member that stays away longer than the timeout fails the team: `Team::check`.
void device_barrier(StreamRef& stream, const Team& team);

}  // namespace iridium
