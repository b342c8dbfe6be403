// What the library's own operations may see of the public handles.
#pragma once

#include "iridium/stream.h"
#include "iridium/team.h"

namespace iridium::detail {

struct Access {
  static StreamImpl& stream(StreamRef& stream) { return stream.impl(); }
  static const std::shared_ptr<StreamImpl>& shared(const StreamRef& stream) { return stream.impl_; }
  static const std::shared_ptr<TeamState>& team(const Team& team) { return team.state_; }
};

}  // namespace iridium::detail
