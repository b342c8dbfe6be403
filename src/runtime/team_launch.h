// How the library's own operations run their kernels.
#pragma once

#include "iridium/device/kernel.h"
#include "runtime/access.h"
#include "runtime/team_state.h"

namespace iridium {

/// Launches `make_kernel(lane)` on every block of `grid`. Throws when this rank is not in the team
/// or the team has failed; `operation` is what errors and faults call it.
template <class MakeKernel>
void launch_on_team(StreamRef& stream, const Team& team, const char* operation, Grid grid,
                    MakeKernel make_kernel) {
  const std::shared_ptr<detail::TeamState>& state = detail::Access::team(team);
  grid.exclusive = state->exclusive();
  const auto kernel = make_kernel(state->lane(operation));
  using Kernel = std::remove_cv_t<decltype(kernel)>;
  detail::StreamImpl& queue = detail::Access::stream(stream);
  state->core().adopt(detail::Access::shared(stream));
  queue.retain_in_capture(state);
  state->core().launch(queue, grid, detail::kernel_entry<Kernel, detail::ThisCompiler>(), &kernel);
}

}  // namespace iridium
