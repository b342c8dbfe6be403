// What `iridium info --peers` has kernels do over a link: store to a peer's memory and load from
// it, tile by tile, as the kernels of collectives do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iridium/context.h"
#include "iridium/stream.h"
#include "iridium/team.h"

namespace iridium::cli {

/// Words to be moved between this rank and the member at `place`. Both pointers are this rank's
/// part of a symmetric array.
struct PeerWords {
  std::uint64_t* to;
  const std::uint64_t* from;
  std::size_t count;
  int place;
};

/// Loads the kernels onto the device, so that no transfer is timed that has to.
void prepare_peer_kernels(const Context& context);

// Both return at once and order nothing between the ranks.

/// A kernel copies my `from` to the member's counterpart of `to`.
void store_to_peer(const Context& context, StreamRef& stream, const Team& team,
                   const PeerWords& words);
/// A kernel copies the member's counterpart of `from` to my `to`.
void load_from_peer(const Context& context, StreamRef& stream, const Team& team,
                    const PeerWords& words);

}  // namespace iridium::cli
