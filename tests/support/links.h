// What tests may expect of the link between the ranks (`IRIDIUM_LINK`), and of their devices.
#pragma once

#include <memory>

#include "iridium/operations.h"

namespace iridium::test {

/// Whether a case of the registry updates other members' memory atomically.
bool needs_native_atomics(const Operation& operation, const Arguments& arguments);

/// Whether a case of the registry is one that some devices cannot do.
bool depends_on_device(const Operation& operation, const Arguments& arguments);

/// Whether kernels of the team may update each other's memory atomically.
bool has_native_atomics(const Team& team);

/// Prepares a case of the registry, or sees it refused, and returns nothing, where it needs more
/// than the team's link or the device can do. Collective over the world.
std::unique_ptr<OperationCase> prepare_or_refuse(Context& context, const Team& team,
                                                 const Operation& operation,
                                                 const Arguments& arguments);

}  // namespace iridium::test
