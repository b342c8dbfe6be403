// Kernels, a message and a barrier are recorded once, and replayed with fresh data.
// Run it with: iridium run -n 4 -- build/examples/07_captured_graph
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "iridium/iridium.h"

namespace {

constexpr std::size_t count = 30'000;

// Waits for nobody, so its grid need not be resident.
struct Add {
  const float* a;
  const float* b;
  float* out;

  static constexpr int tile_elements = 2048;

  IR_DEVICE void operator()(iridium::Block block) const {
    const std::size_t stride = static_cast<std::size_t>(block.count()) * tile_elements;
    std::size_t first = static_cast<std::size_t>(block.index()) * tile_elements;
    for (; first < count; first += stride) {
      const auto sum = iridium::load<tile_elements>(block, a, first, count) +
                       iridium::load<tile_elements>(block, b, first, count);
      iridium::store(block, out, first, count, sum);
    }
  }
};

// out = my `in` + twice that of the previous rank. A step is the same calls whether the stream runs
// them or records them.
struct Step {
  iridium::SymmetricArray<float> outbox, inbox;
  iridium::SymmetricArray<std::uint32_t> full;

  Step(iridium::Context& context, iridium::Stream& stream)
      : outbox(context.allocate<float>(count)),
        inbox(context.allocate<float>(count)),
        full(context.allocate<std::uint32_t>(1)) {
    stream.fill(full.data(), 0, full.bytes());
    stream.synchronize();
    context.barrier();  // nobody may signal before all have set their flags to zero
  }

  void submit(iridium::Context& context, iridium::Stream& stream, const float* in,
              float* out) const {
    const iridium::Team team = context.world();
    const int next = (team.rank() + 1) % team.size();
    const int previous = (team.rank() + team.size() - 1) % team.size();
    context.launch(stream, 8, Add{in, in, outbox.data()});
    // A replay passes the same value again, so the wait takes it off the flag. The barrier below
    // keeps the next signal away until then.
    iridium::put_signal(stream, team, inbox.data(), outbox.data(), outbox.bytes(), next,
                        full.data(), 1);
    iridium::wait(stream, team, full.data(), 1, {.consume = true, .from = previous});
    context.launch(stream, 8, Add{in, inbox.data(), out});
    iridium::device_barrier(stream, team);  // every inbox has been read: the next step may write
  }
};

iridium::Graph record(iridium::Context& context, iridium::Stream& stream, const Step& step,
                      const float* in, float* out) {
  stream.begin_capture();
  step.submit(context, stream, in, out);
  // The recorded calls know addresses only: this tells the graph which memory they need.
  step.outbox.retain_on(stream);
  step.inbox.retain_on(stream);
  step.full.retain_on(stream);
  try {
    stream.synchronize();  // nothing is running that one could wait for
  } catch (const iridium::Error& error) {
    // Refused, and the capture goes on.
    if (error.code() != iridium::Errc::capture_unsupported) throw;
  }
  return stream.end_capture();
}

float input_value(int rank, int round, std::size_t i) {
  return static_cast<float>(static_cast<int>(i % 1000) + 1000 * rank + 100'000 * round);
}

// Runs `work` on fresh input and checks what comes out.
template <class Work>
bool is_right(iridium::Stream& stream, const iridium::Team& team,
              const iridium::SymmetricArray<float>& in, const iridium::SymmetricArray<float>& out,
              int round, Work work) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(input_value(team.rank(), round, i));
  stream.copy(in.data(), values.data(), in.bytes());
  work();
  std::vector<float> found(count);
  stream.copy(found.data(), out.data(), out.bytes());
  stream.synchronize();
  team.check();
  const int previous = (team.rank() + team.size() - 1) % team.size();
  for (std::size_t i = 0; i < count; ++i)
    if (found[i] != values[i] + 2 * input_value(previous, round, i)) return false;
  return true;
}

int run() {
  iridium::Context context;
  context.prepare<Add>();
  iridium::Stream stream = context.make_stream();
  const iridium::Team team = context.world();
  auto in = context.allocate<float>(count);
  auto out = context.allocate<float>(count);
  std::optional<iridium::Graph> graph;
  const auto replay = [&] { stream.launch(*graph); };

  bool right = true;
  {
    const Step step(context, stream);
    const auto eager = [&] { step.submit(context, stream, in.data(), out.data()); };
    right = is_right(stream, team, in, out, 0, eager) && right;
    graph = record(context, stream, step, in.data(), out.data());
    right = is_right(stream, team, in, out, 1, replay) && right;
    right = is_right(stream, team, in, out, 2, eager) && right;
  }
  // The step's arrays are gone, but not their memory: else this one would now lie there, and the
  // replays would write into it.
  auto other = context.allocate<float>(count);
  stream.fill(other.data(), 0, other.bytes());
  for (int round = 3; round < 6; ++round)
    right = is_right(stream, team, in, out, round, replay) && right;
  std::vector<float> untouched(count, 1);
  stream.copy(untouched.data(), other.data(), other.bytes());
  stream.synchronize();
  right = right && untouched == std::vector<float>(count);

  std::printf(
      "rank %d of %d, process %ld, backend %s: 2 eager steps and 4 replays of %zu operations: %s\n",
      context.rank(), context.size(), static_cast<long>(::getpid()),
      std::string(iridium::name(context.backend())).c_str(), graph->node_count(),
      right ? "right" : "WRONG");
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
