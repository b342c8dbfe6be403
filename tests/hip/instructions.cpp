// Kernels whose instructions tools/hip_check.sh looks at.
#include <hip/hip_runtime.h>

#include <cstdint>

#include "iridium/device/signal.h"
#include "iridium/device/tile.h"

using iridium::fp16;
using Block = iridium::Block;

constexpr int threads = Block::gpu_threads;
constexpr int elements = threads * iridium::vector_elements<fp16>;

// Another wave may announce what this one has stored: the barrier waits until it is there.
extern "C" __global__ void __launch_bounds__(threads) store_tile(fp16* to) {
  const Block block;
  const auto tile = iridium::Tile<fp16, elements, threads>::filled(fp16(1.0f));
  iridium::store(block, to, 0, elements, tile);
  block.sync();
}

// What other waves have stored is announced once the cache has written it back.
extern "C" __global__ void __launch_bounds__(threads) announce(std::uint32_t* flag) {
  iridium::signal(Block(), flag, 1, iridium::SignalOp::add);
}
