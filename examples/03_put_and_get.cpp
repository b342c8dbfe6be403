// Vectors of any length go around a ring of ranks: by stream operations, and in a kernel.
// Run it with: iridium run -n 4 -- build/examples/03_put_and_get
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "iridium/iridium.h"

namespace {

// Any number will do: it need not be a multiple of the blocks, of a tile, or of 16 bytes.
constexpr std::size_t count = 100'003;

struct Arrays {
  iridium::SymmetricArray<int> mine, inbox, result;

  explicit Arrays(iridium::Context& context)
      : mine(context.allocate<int>(count)),
        inbox(context.allocate<int>(count)),
        result(context.allocate<int>(count)) {}
};

// Every rank puts its vector into the inbox of the next one, then gets what is in the inbox of the
// previous one: it comes from two places back.
void ring_on_stream(iridium::Stream& stream, const iridium::Team& team, const Arrays& arrays) {
  const int next = (team.rank() + 1) % team.size();
  const int previous = (team.rank() + team.size() - 1) % team.size();
  iridium::put(stream, team, arrays.inbox.data(), arrays.mine.data(), arrays.mine.bytes(), next);
  iridium::device_barrier(stream, team);  // every inbox is full
  iridium::get(stream, team, arrays.result.data(), arrays.inbox.data(), arrays.inbox.bytes(),
               previous);
  iridium::device_barrier(stream, team);  // every inbox has been read and may be written again
}

// The same in one kernel, whose blocks share the work.
struct Ring {
  iridium::Lane lane;
  const int* mine;
  int* inbox;
  int* result;

  IR_DEVICE void operator()(iridium::Block block) const {
    const int rank = lane.peers().rank();
    const int size = lane.peers().size();
    // A block's part of the vector: the same on every rank, since all have the same grid.
    const auto [first, part] = iridium::slice_of<int>(block, count);

    iridium::LaneCall call(lane, block);
    if (!call.enter()) return;  // every rank has got here, and reads no inbox any more
    iridium::put(block, lane, inbox + first, mine + first, part, (rank + 1) % size);
    if (!call.barrier()) return;  // this block of every rank has put its part
    iridium::get(block, lane, result + first, inbox + first, part, (rank + size - 1) % size);
    call.leave();  // and has got it
  }
};

constexpr iridium::Grid grid = {.blocks = 4, .resident = true};

int input_value(int rank, int round, std::size_t i) {
  return (16 * rank + round) * 1'000'000 + static_cast<int>(i);
}

// Sends fresh vectors around three times by `ring` and checks what comes.
template <class Function>
bool is_right(iridium::Stream& stream, const iridium::Team& team, const Arrays& arrays,
              Function ring) {
  const int source = (team.rank() + 2 * team.size() - 2) % team.size();
  bool right = true;
  for (int round = 0; round < 3; ++round) {
    std::vector<int> values(count), expected(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = input_value(team.rank(), round, i);
      expected[i] = input_value(source, round, i);
    }
    stream.copy(arrays.mine.data(), values.data(), arrays.mine.bytes());
    ring();
    std::vector<int> found(count);
    stream.copy(found.data(), arrays.result.data(), arrays.result.bytes());
    stream.synchronize();
    team.check();
    right = right && found == expected;
  }
  return right;
}

int run() {
  iridium::Context context;
  context.prepare<Ring>();
  iridium::Stream stream = context.make_stream();
  const iridium::Team team = context.world();
  const Arrays arrays(context);

  const bool by_stream =
      is_right(stream, team, arrays, [&] { ring_on_stream(stream, team, arrays); });
  const bool by_kernel = is_right(stream, team, arrays, [&] {
    context.launch(
        stream, grid,
        Ring{team.lane("ring"), arrays.mine.data(), arrays.inbox.data(), arrays.result.data()});
  });

  std::printf(
      "rank %d of %d, process %ld, backend %s: %zu elements by stream operations: %s; "
      "in a kernel: %s\n",
      context.rank(), context.size(), static_cast<long>(::getpid()),
      std::string(iridium::name(context.backend())).c_str(), count, by_stream ? "right" : "WRONG",
      by_kernel ? "right" : "WRONG");
  context.barrier();
  return by_stream && by_kernel ? 0 : 1;
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
