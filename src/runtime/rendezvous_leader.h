// Rank 0's side of the rendezvous.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/host_wait.h"
#include "iridium/bootstrap.h"
#include "runtime/rendezvous.h"

namespace iridium {

/// Waits at `path` for every other rank, then hands out the links.
Rendezvous lead(const Job& job, const std::string& path, const WaitLimit& limit,
                const std::function<void(std::string_view)>& on_step);

}  // namespace iridium
