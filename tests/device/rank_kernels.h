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

}  // namespace iridium::test
