#include "device/rank_kernels.h"

#include "device/pass_tiles.h"

namespace iridium::test {
namespace {

template <int Threads>
IR_DEVICE void spend(BlockOf<Threads> block, std::uint64_t nanoseconds) {
  const std::uint64_t start = block.nanoseconds();
  while (block.nanoseconds() - start < nanoseconds) block.pause(true);
}

struct HoldLane {
  Lane lane;
  std::uint64_t nanoseconds;

  IR_DEVICE void operator()(BlockOf<64> block) const {
    LaneCall call(lane, block);
    if (!call.enter()) return;
    spend(block, nanoseconds);
    call.leave();
  }
};

struct Delay {
  std::uint64_t nanoseconds;
  IR_DEVICE void operator()(BlockOf<64> block) const { spend(block, nanoseconds); }
};

template <bool Early>
struct LateIncrement {
  static constexpr bool begins_early = Early;
  std::uint64_t nanoseconds;
  std::uint32_t* words;

  IR_DEVICE void operator()(BlockOf<64> block) const {
    if constexpr (Early) block.await_previous();
    const std::uint32_t before = words[block.index()];
    block.let_next_start();
    spend(block, nanoseconds);
    block.sync();
    if (block.is_leader()) words[block.index()] = before + 1;
  }
};

struct LargeBlocks {
  static constexpr int block_bytes = large_block_bytes;
  std::uint32_t* sums;

  IR_DEVICE void operator()([[maybe_unused]] BlockOf<64> block) const {
#if IR_ON_CUDA
    extern __shared__ std::uint32_t words[];
    constexpr int count = block_bytes / 4;
    for (int i = block.thread(); i < count; i += 64)
      words[i] = static_cast<std::uint32_t>(i + block.index());
    block.sync();
    std::uint32_t sum = 0;
    for (int i = 0; i < count; ++i) sum += words[i];
    sums[block.index() * 64 + block.thread()] = sum;
#endif
  }
};

struct Pairs {
  static constexpr int cluster = 2;
  std::uint32_t* seen;

  IR_DEVICE void operator()([[maybe_unused]] BlockOf<64> block) const {
#if IR_ON_CUDA && __CUDA_ARCH__ >= 900
    __shared__ std::uint32_t word;
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;\n" ::: "memory");
    if (block.is_leader())
      asm volatile(
          "{\n.reg .b32 rank, remote;\nmov.u32 rank, %%cluster_ctarank;\nxor.b32 rank, rank, 1;\n"
          "mapa.shared::cluster.u32 remote, %0, rank;\nst.shared::cluster.u32 [remote], %1;\n}\n" ::
              "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(&word))),
          "r"(block.index())
          : "memory");
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;\n" ::: "memory");
    if (block.is_leader()) seen[block.index()] = word;
#endif
  }
};

struct Nothing {
  IR_DEVICE void operator()(Block) const {}
};

std::uint64_t count_nanoseconds(std::chrono::nanoseconds time) {
  return static_cast<std::uint64_t>(time.count());
}

}  // namespace

void prepare_kernels(const Context& context) {
  context.prepare<HoldLane>();
  context.prepare<Delay>();
  context.prepare<PassTiles<>>();
  context.prepare<PacketSum>();
  context.prepare<StagedSum<LaneCall>>();
  context.prepare<StagedBroadcast<LaneCall>>();
  context.prepare<PullGather<LaneCall>>();
  context.prepare<PushGather<LaneCall>>();
  context.prepare<ManyBarriers<LaneCall>>();
}

void launch_call(const Context& context, StreamRef& stream, const Lane& lane,
                 const PlannedCall& call, std::uint32_t* data) {
  with_kernel<LaneCall>(call, lane, data, [&](const auto& kernel) {
    context.launch(stream, Grid{.blocks = call.blocks, .resident = true}, kernel);
  });
}

void launch_pass_tiles(const Context& context, StreamRef& stream, const Lane& lane,
                       std::uint32_t* data, std::uint32_t first, std::uint32_t tiles) {
  context.launch(stream, 1, PassTiles<>{lane, data, first, tiles});
}

void launch_hold_lane(const Context& context, StreamRef& stream, const Lane& lane, int blocks,
                      std::chrono::milliseconds time) {
  context.launch(stream, Grid{.blocks = blocks, .resident = true},
                 HoldLane{lane, count_nanoseconds(time)});
}

void launch_delay(const Context& context, StreamRef& stream, std::chrono::milliseconds time) {
  context.launch(stream, 1, Delay{count_nanoseconds(time)});
}

void launch_late_increment(const Context& context, StreamRef& stream, int blocks,
                           std::chrono::microseconds time, std::uint32_t* words,
                           bool begins_early) {
  if (begins_early)
    context.launch(stream, blocks, LateIncrement<true>{count_nanoseconds(time), words});
  else
    context.launch(stream, blocks, LateIncrement<false>{count_nanoseconds(time), words});
}

void launch_resident(const Context& context, StreamRef& stream, int blocks) {
  context.launch(stream, Grid{.blocks = blocks, .resident = true}, Nothing());
}

void launch_large_blocks(const Context& context, StreamRef& stream, const Grid& grid,
                         std::uint32_t* sums) {
  context.launch(stream, grid, LargeBlocks{sums});
}

void prepare_large_blocks(const Context& context) {
  context.prepare<LargeBlocks>();
}

void launch_pairs(const Context& context, StreamRef& stream, const Grid& grid,
                  std::uint32_t* seen) {
  context.launch(stream, grid, Pairs{seen});
}

void launch_wide(const Context& context, StreamRef& stream, int blocks, const WideKernel& kernel) {
  context.launch(stream, blocks, kernel);
}

}  // namespace iridium::test
