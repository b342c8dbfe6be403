// A kernel reads and writes its neighbours' memory: single elements, and whole tiles.
// Run it with: iridium run -n 4 -- build/examples/02_remote_load_and_store
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "iridium/iridium.h"

namespace {

// What the kernel shares with its peers: each pointer is this rank's part of a symmetric array.
struct Shared {
  int* numbers;         // one per rank
  const float* factor;  // a single element
  const float* in;      // the others have `count` elements
  float* pulled;
  float* pushed;
};

// A kernel is a plain value with a call operator, which runs once per block.
struct Visit {
  iridium::Lane lane;  // how the kernel talks to its peers
  Shared my;
  std::size_t count;

  // Four floats, 16 bytes, for each of the 512 threads that a block has on a GPU.
  static constexpr int tile_elements = 2048;

  IR_DEVICE void operator()(iridium::Block block) const {
    const int rank = lane.peers().rank();
    const int size = lane.peers().size();
    const int next = (rank + 1) % size;
    const int previous = (rank + size - 1) % size;

    iridium::LaneCall call(lane, block);
    if (!call.enter()) return;  // every rank's inputs are written, and its outputs are free

    // Single elements: the exchange of example 01. One block does it, one thread for each peer.
    if (block.index() == 0)
      block.share<iridium::max_team_size>(size, [&](int peer) {
        iridium::remote_store(block, lane, my.numbers + rank, 100 * rank + peer, peer);
      });
    const float factor = iridium::remote_load(block, lane, my.factor, previous);

    // Tiles: every block takes each `block.count()`th.
    const std::size_t stride = static_cast<std::size_t>(block.count()) * tile_elements;
    std::size_t first = static_cast<std::size_t>(block.index()) * tile_elements;
    for (; first < count; first += stride) {
      const auto theirs =
          iridium::load_from<tile_elements>(block, lane, my.in, previous, first, count);
      iridium::store(block, my.pulled, first, count,
                     theirs.map([&](float value) { return factor * value; }));
      const auto mine = iridium::load<tile_elements>(block, my.in, first, count);
      iridium::store_to(block, lane, my.pushed, next, first, count, mine);
    }
    call.leave();  // what was written to this rank has arrived, what is read of it has been read
  }
};

// Not a multiple of the tile: loads and stores mind the end of the vector.
constexpr std::size_t count = 10'000;
// The same on every rank. Every block waits for its peers, so all must run at the same time.
constexpr iridium::Grid grid = {.blocks = 3, .resident = true};

// Whole numbers that a float holds exactly, also when multiplied; others for every rank and round.
float input_value(int rank, int round, std::size_t i) {
  return static_cast<float>(static_cast<int>(i % 1000) + 1000 * rank + 100'000 * round);
}
float input_factor(int rank, int round) {
  return static_cast<float>(rank % 4 + round + 1);
}

struct Arrays {
  iridium::SymmetricArray<int> numbers;
  iridium::SymmetricArray<float> factor, in, pulled, pushed;

  explicit Arrays(iridium::Context& context)
      : numbers(context.allocate<int>(static_cast<std::size_t>(context.size()))),
        factor(context.allocate<float>(1)),
        in(context.allocate<float>(count)),
        pulled(context.allocate<float>(count)),
        pushed(context.allocate<float>(count)) {}

  Shared shared() const {
    return {numbers.data(), factor.data(), in.data(), pulled.data(), pushed.data()};
  }
};

void set_inputs(iridium::Stream& stream, const Arrays& arrays, int rank, int round) {
  const float factor = input_factor(rank, round);
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(input_value(rank, round, i));
  stream.copy(arrays.factor.data(), &factor, sizeof factor);
  stream.copy(arrays.in.data(), values.data(), arrays.in.bytes());
  stream.synchronize();  // `values` ends here
}

bool is_right(iridium::Stream& stream, const iridium::Team& team, const Arrays& arrays, int round) {
  std::vector<int> numbers(arrays.numbers.size());
  std::vector<float> pulled(count), pushed(count);
  stream.copy(numbers.data(), arrays.numbers.data(), arrays.numbers.bytes());
  stream.copy(pulled.data(), arrays.pulled.data(), arrays.pulled.bytes());
  stream.copy(pushed.data(), arrays.pushed.data(), arrays.pushed.bytes());
  stream.synchronize();
  team.check();  // a kernel cannot throw: where a peer was missing, this does

  for (int peer = 0; peer < team.size(); ++peer)
    if (numbers[static_cast<std::size_t>(peer)] != 100 * peer + team.rank()) return false;
  const int previous = (team.rank() + team.size() - 1) % team.size();
  for (std::size_t i = 0; i < count; ++i) {
    const float theirs = input_value(previous, round, i);
    if (pushed[i] != theirs || pulled[i] != input_factor(previous, round) * theirs) return false;
  }
  return true;
}

int run() {
  iridium::Context context;
  context.prepare<Visit>();  // else its first launch waits for kernels that are running
  iridium::Stream stream = context.make_stream();
  const iridium::Team team = context.world();
  const Arrays arrays(context);

  // No barrier of the host in this loop: `enter` and `leave` order all that ranks do to each other.
  bool right = true;
  for (int round = 0; round < 3; ++round) {
    set_inputs(stream, arrays, context.rank(), round);
    context.launch(stream, grid, Visit{team.lane("visit"), arrays.shared(), count});
    right = is_right(stream, team, arrays, round) && right;
  }

  std::printf(
      "rank %d of %d, process %ld, backend %s: %zu elements pulled and pushed, 3 times: %s\n",
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
