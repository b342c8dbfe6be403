// An all-reduce is captured once and replayed with fresh data; every rank gets the same bits.
// Run it with: iridium run -n 4 -- build/examples/10_all_reduce
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "iridium/iridium.h"

namespace {

constexpr std::size_t count = 10'000;

/// Rank `rank`'s element in replay `replay`. Small whole numbers, so that sums are exact.
float element(int rank, int replay, std::size_t i) {
  return static_cast<float>((static_cast<int>(i) + 3 * rank + 7 * replay) % 100);
}

void set_inputs(iridium::Context& context, iridium::Stream& stream, float* in, int replay) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = element(context.rank(), replay, i);
  stream.copy(in, values.data(), count * sizeof(float));
  stream.synchronize();
}

bool is_right(iridium::Context& context, iridium::Stream& stream, const float* out, int replay) {
  std::vector<float> found(count);
  stream.copy(found.data(), out, count * sizeof(float));
  stream.synchronize();
  // What a kernel of this team found wrong is thrown here.
  context.world().check();
  for (std::size_t i = 0; i < count; ++i) {
    float expected = 0;
    for (int rank = 0; rank < context.size(); ++rank) expected += element(rank, replay, i);
    if (found[i] != expected) return false;
  }
  return true;
}

void run() {
  iridium::Context context;
  iridium::Stream stream = context.make_stream();
  const iridium::Team team = context.world();
  auto in = context.allocate<float>(count);
  auto out = context.allocate<float>(count);

  // Nothing to set up before, nothing to synchronise after: a call is a call, recorded or not. The
  // tuning table chooses the algorithm; `options.algorithm` would.
  stream.begin_capture();
  iridium::all_reduce(stream, team, out, in, count);
  // In place, on a plain pointer: the call stages it, whatever it points to.
  iridium::all_reduce(stream, team, out.data(), out.data(), count, {.op = iridium::ReduceOp::max});
  const iridium::Graph graph = stream.end_capture();

  constexpr int replays = 100;
  for (int replay = 0; replay < replays; ++replay) {
    set_inputs(context, stream, in.data(), replay);
    stream.launch(graph);
    if (!is_right(context, stream, out.data(), replay))
      throw std::runtime_error("replay " + std::to_string(replay) + " is wrong");
  }
  std::printf("rank %d: %d replays of two all-reduces of %zu floats are right\n", context.rank(),
              replays, count);
  context.barrier();
}

}  // namespace

int main() {
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
