// Message passing: rank 0 hands tiles to rank 1, one after another, each announced by a signal.
#pragma once

#include <cstdint>

#include "iridium/device/signal.h"

namespace iridium::test {

/// The real signal; tests of the tests have another.
struct RightSignal {
  template <int Threads>
  IR_DEVICE void operator()(BlockOf<Threads> block, std::uint32_t* flag,
                            std::uint32_t value) const {
    signal(block, flag, value);
  }
};

template <class Signal = RightSignal>
struct PassTiles {
  static constexpr int elements = 64;

  Lane lane;
  std::uint32_t* data;  ///< a flag for the data, a flag back, the count of wrong elements, the tile
  std::uint32_t first;  ///< value of the flags before the first tile
  std::uint32_t tiles;

  IR_DEVICE void operator()(BlockOf<64> block) const {
    const Peers& peers = lane.peers();
    std::uint32_t* const there = data;
    std::uint32_t* const taken = data + 1;
    std::uint32_t* const tile = data + 4;
    std::uint32_t wrong = 0;
    for (std::uint32_t turn = first + 1; turn != first + tiles + 1; ++turn) {
      if (peers.rank() == 0) {
        store(block, peers.at(tile, 1), 0, elements,
              Tile<std::uint32_t, elements, 64>::filled(turn));
        Signal()(block, peers.at(there, 1), turn);
        if (!wait(block, lane, taken, turn, Compare::at_least, 1)) return;
      } else {
        if (!wait(block, lane, there, turn, Compare::at_least, 0)) return;
        if (block.is_leader())
          for (int i = 0; i < elements; ++i) wrong += tile[i] != turn;
        signal(block, peers.at(taken, 0), turn);
      }
    }
    if (block.is_leader()) data[2] = wrong;
  }
};

}  // namespace iridium::test
