#include "cli/peer_kernels.h"

#include <algorithm>

#include "iridium/device/remote_memory.h"

namespace iridium::cli {
namespace {

/// Four vectors of every thread in flight: what it takes to fill a link.
constexpr int tile = 4 * Block::gpu_threads * vector_elements<std::uint64_t>;

struct StoreToPeer {
  Lane lane;
  PeerWords words;

  IR_DEVICE void operator()(Block block) const {
    const std::size_t step = static_cast<std::size_t>(block.count()) * tile;
    for (auto first = static_cast<std::size_t>(block.index()) * tile; first < words.count;
         first += step) {
      const auto values = load<tile>(block, words.from, first, words.count);
      store_to(block, lane, words.to, words.place, first, words.count, values);
    }
  }
};

struct LoadFromPeer {
  Lane lane;
  PeerWords words;

  IR_DEVICE void operator()(Block block) const {
    const std::size_t step = static_cast<std::size_t>(block.count()) * tile;
    for (auto first = static_cast<std::size_t>(block.index()) * tile; first < words.count;
         first += step) {
      const auto values = load_from<tile>(block, lane, words.from, words.place, first, words.count);
      store(block, words.to, first, words.count, values);
    }
  }
};

/// As many blocks as a call of the team may have, and have work.
int blocks_for(const Team& team, std::size_t count) {
  const std::size_t tiles = std::max<std::size_t>((count + tile - 1) / tile, 1);
  return static_cast<int>(std::min(tiles, static_cast<std::size_t>(team.max_blocks())));
}

}  // namespace

void prepare_peer_kernels(const Context& context) {
  context.prepare<StoreToPeer>();
  context.prepare<LoadFromPeer>();
}

void store_to_peer(const Context& context, StreamRef& stream, const Team& team,
                   const PeerWords& words) {
  context.launch(stream, blocks_for(team, words.count),
                 StoreToPeer{team.lane("store_to_peer"), words});
}

void load_from_peer(const Context& context, StreamRef& stream, const Team& team,
                    const PeerWords& words) {
  context.launch(stream, blocks_for(team, words.count),
                 LoadFromPeer{team.lane("load_from_peer"), words});
}

}  // namespace iridium::cli
