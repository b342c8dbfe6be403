// Launches of test kernels, for files that nvcc does not compile.
#pragma once

#include <cstdint>

#include "device/lane_kernels.h"
#include "iridium/iridium.h"

namespace iridium::test {

/// Loads all kernels below: their first launches must not wait for kernels that wait.
void prepare_kernels(const Context& context);

void launch_call(const Context& context, StreamRef& stream, const Lane& lane,
                 const PlannedCall& call, std::uint32_t* data);
/// See `PassTiles`.
void launch_pass_tiles(const Context& context, StreamRef& stream, const Lane& lane,
                       std::uint32_t* data, std::uint32_t first, std::uint32_t tiles);
/// Enters the lane, stays for that long, and leaves.
void launch_hold_lane(const Context& context, StreamRef& stream, const Lane& lane, int blocks,
                      std::chrono::milliseconds time);
/// Keeps the stream busy without waiting for anybody.
void launch_delay(const Context& context, StreamRef& stream, std::chrono::milliseconds time);
/// Each block lets the next kernel start, and after that time adds 1 to its own of `words`: two
/// such kernels at once would lose some. `begins_early`: it waits itself for the kernel before it.
void launch_late_increment(const Context& context, StreamRef& stream, int blocks,
                           std::chrono::microseconds time, std::uint32_t* words, bool begins_early);
/// As many blocks as asked for, resident, which do nothing.
void launch_resident(const Context& context, StreamRef& stream, int blocks);

/// Each block fills `large_block_bytes` of memory of its own, and each thread adds up what all
/// others have left there: `sums[block * 64 + thread]`.
inline constexpr int large_block_bytes = 160 * 1024;
void launch_large_blocks(const Context& context, StreamRef& stream, const Grid& grid,
                         std::uint32_t* sums);
void prepare_large_blocks(const Context& context);

/// Pairs of blocks: each writes its index to the other one's memory, and what it finds in its own
/// to `seen[block]`.
void launch_pairs(const Context& context, StreamRef& stream, const Grid& grid, std::uint32_t* seen);

/// Each block writes how far its value lies behind an address that 128 divides, and the sum of what
/// the value holds, to `words[2 * block]` and behind.
struct alignas(128) WideKernel {
  std::uint32_t held[32];
  std::uint32_t* words;

  IR_DEVICE void operator()(BlockOf<32> block) const {
    if (!block.is_leader()) return;
    std::uint32_t sum = 0;
    for (const std::uint32_t value : held) sum += value;
    words[2 * block.index()] =
        static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(this) % 128);
    words[2 * block.index() + 1] = sum;
  }
};
void launch_wide(const Context& context, StreamRef& stream, int blocks, const WideKernel& kernel);

}  // namespace iridium::test
