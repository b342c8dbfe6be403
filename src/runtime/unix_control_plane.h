// Control links over Unix sockets of one host.
#pragma once

#include <memory>
#include <vector>

#include "base/file_descriptor.h"
#include "runtime/control_plane.h"

namespace iridium {

/// A connection to another rank, and what has been read from it but not been looked at yet.
struct ControlLink {
  FileDescriptor socket;
  MessageReader reader;
};

/// `links[r]` is connected to rank r; this rank's own entry is empty.
std::unique_ptr<ControlPlane> make_unix_control_plane(int rank, std::vector<ControlLink> links);

}  // namespace iridium
