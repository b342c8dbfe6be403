// How the ranks of a job find each other: everyone connects to rank 0, which hands out the links
// between them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/host_wait.h"
#include "iridium/bootstrap.h"
#include "runtime/unix_control_plane.h"

namespace iridium {

struct Rendezvous {
  std::uint64_t context_id = 0;    ///< drawn by the leader: no two contexts share one
  std::vector<ControlLink> links;  ///< to every other rank; this rank's own entry is empty
};

/// Where the ranks of `job` meet for the context called `context_name`.
std::string rendezvous_path(const Job& job, const std::string& context_name);

/// Meets the other ranks. When one fails, all fail, with the same reason: which rank was missing at
/// which step. `on_step` is called when a step begins.
Rendezvous meet(const Job& job, const std::string& context_name, const WaitLimit& limit,
                const std::function<void(std::string_view)>& on_step);

}  // namespace iridium
