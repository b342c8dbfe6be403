// A kernel of one's own: every rank reads every rank's vector and adds them up, tile by tile.
// Run it with: iridium run -n 4 -- build/examples/06_own_kernel
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "iridium/iridium.h"

namespace {

using iridium::bf16;

// A kernel is a plain value with a call operator, which runs once per block. `in` lies in a
// symmetric array, so that a peer's counterpart has an address; `out` is this rank's own.
struct SumOverRanks {
  iridium::Lane lane;
  const bf16* in;
  float* out;
  std::size_t count;

  // Eight elements, 16 bytes, for each of the 512 threads that a block has on a GPU.
  static constexpr int tile_elements = 4096;

  // A tile of a peer's vector, as floats: adding in bf16 would round every partial sum.
  IR_DEVICE auto tile_of(int peer, iridium::Block block, std::size_t first) const {
    return iridium::convert<float>(
        iridium::load_from<tile_elements>(block, lane, in, peer, first, count));
  }

  IR_DEVICE void operator()(iridium::Block block) const {
    iridium::LaneCall call(lane, block);
    if (!call.enter()) return;  // from here on every rank's input is ready
    const std::size_t stride = static_cast<std::size_t>(block.count()) * tile_elements;
    std::size_t first = static_cast<std::size_t>(block.index()) * tile_elements;
    for (; first < count; first += stride) {
      auto sum = tile_of(0, block, first);
      // In the same order on every rank, and so with the same bits.
      for (int peer = 1; peer < lane.peers().size(); ++peer)
        sum = sum + tile_of(peer, block, first);
      iridium::store(block, out, first, count, sum);
    }
    call.leave();  // from here on nobody reads this rank's input
  }
};

// Not a multiple of the tile: `load` and `store` mind the end of the vector.
constexpr std::size_t count = 50'000;
// The same on every rank. Every block waits for its peers, so all must run at the same time.
constexpr iridium::Grid grid = {.blocks = 4, .resident = true};

// Small whole numbers, which bf16 holds exactly; another vector for every rank and round.
float input_value(int rank, int round, std::size_t i) {
  return static_cast<float>(i % 13) + static_cast<float>(rank + 16 * round);
}

void set_input(iridium::Stream& stream, const iridium::SymmetricArray<bf16>& in, int rank,
               int round) {
  std::vector<bf16> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(iridium::convert<bf16>(input_value(rank, round, i)));
  stream.copy(in.data(), values.data(), in.bytes());
  stream.synchronize();
}

bool is_right(iridium::Stream& stream, const iridium::Team& team,
              const iridium::SymmetricArray<float>& out, int round) {
  std::vector<float> sums(count);
  stream.copy(sums.data(), out.data(), out.bytes());
  stream.synchronize();
  team.check();  // a kernel cannot throw: where a peer was missing, this does
  for (std::size_t i = 0; i < count; ++i) {
    float expected = 0;
    for (int rank = 0; rank < team.size(); ++rank) expected += input_value(rank, round, i);
    if (sums[i] != expected) return false;
  }
  return true;
}

int run() {
  iridium::Context context;
  context.prepare<SumOverRanks>();  // else its first launch waits for kernels that are running
  iridium::Stream stream = context.make_stream();
  const iridium::Team team = context.world();
  auto in = context.allocate<bf16>(count);
  auto out = context.allocate<float>(count);
  const auto launch = [&] {
    context.launch(stream, grid,
                   SumOverRanks{team.lane("sum_over_ranks"), in.data(), out.data(), count});
  };

  set_input(stream, in, context.rank(), 0);
  launch();
  bool right = is_right(stream, team, out, 0);

  stream.begin_capture();
  launch();
  const iridium::Graph graph = stream.end_capture();
  for (int round = 1; round <= 3; ++round) {
    set_input(stream, in, context.rank(), round);
    stream.launch(graph);
    right = is_right(stream, team, out, round) && right;
  }

  std::printf(
      "rank %d of %d, process %ld, backend %s: %zu sums, run once and replayed 3 times: %s\n",
      context.rank(), context.size(), static_cast<long>(::getpid()),
      std::string(iridium::name(context.backend())).c_str(), count, right ? "right" : "WRONG");
  context.barrier();
  return right ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
