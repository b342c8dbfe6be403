// The probe tries out whether an operation survives a capture: one that does, and one that does
// not. Run it with: iridium run -n 4 -- build/examples/09_probe
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "iridium/iridium.h"

namespace {

constexpr std::size_t count = 10'000;

// The right way to count steps: every run of the kernel adds one, also when a graph runs it.
struct NextStep {
  std::uint32_t* step;

  IR_DEVICE void operator()(iridium::Block block) const {
    if (block.is_leader()) ++*step;
  }
};

// The mistake: `number` is an argument of the launch, and a graph keeps the one of its capture.
struct SetStep {
  std::uint32_t* step;
  std::uint32_t number;

  IR_DEVICE void operator()(iridium::Block block) const {
    if (block.is_leader()) *step = number;
  }
};

// Multiplies the vector by the number of the step.
struct Weigh {
  const float* in;
  float* out;
  const std::uint32_t* step;

  static constexpr int tile_elements = 2048;

  IR_DEVICE void operator()(iridium::Block block) const {
    const float weight = static_cast<float>(*step);
    const std::size_t stride = static_cast<std::size_t>(block.count()) * tile_elements;
    std::size_t first = static_cast<std::size_t>(block.index()) * tile_elements;
    for (; first < count; first += stride) {
      const auto tile = iridium::load<tile_elements>(block, in, first, count);
      iridium::store(block, out, first, count,
                     tile.map([weight](float value) { return weight * value; }));
    }
  }
};

// Small whole numbers, whose multiples are exact, and never zero: a wrong weight shows everywhere.
float input_value(int rank, std::uint64_t seed, std::size_t i) {
  return static_cast<float>((10 * seed + static_cast<std::uint64_t>(rank) + i) % 1000 + 1);
}

enum class Counter { on_device, on_host };

// Step n: every rank gets n times the vector of the previous rank.
class WeightedPass {
 public:
  WeightedPass(iridium::Context& context, iridium::Stream& stream, Counter counter)
      : context_(context),
        stream_(stream),
        counter_(counter),
        team_(context.make_team(context.world().ranks())),
        in_(context.allocate<float>(count)),
        weighed_(context.allocate<float>(count)),
        out_(context.allocate<float>(count)),
        step_(context.allocate<std::uint32_t>(1)),
        full_(context.allocate<std::uint32_t>(1)) {
    stream.fill(step_.data(), 0, step_.bytes());
    stream.fill(full_.data(), 0, full_.bytes());
    stream.synchronize();
    context.barrier();  // nobody may signal before all have set their flags to zero
  }

  void launch(iridium::StreamRef& stream) {
    const int next = (team_.rank() + 1) % team_.size();
    if (counter_ == Counter::on_device)
      context_.launch(stream, 1, NextStep{step_.data()});
    else
      context_.launch(stream, 1, SetStep{step_.data(), ++launches_});
    context_.launch(stream, 4, Weigh{in_.data(), weighed_.data(), step_.data()});
    iridium::device_barrier(stream, team_);  // nobody uses the old `out_` any more
    iridium::put_signal(stream, team_, out_.data(), weighed_.data(), out_.bytes(), next,
                        full_.data(), 1);
    iridium::wait(stream, team_, full_.data(), 1, {.consume = true, .from = previous()});
  }

  void set_inputs(std::uint64_t seed) {
    const std::vector<float> values = inputs_of(team_.rank(), seed);
    stream_.copy(in_.data(), values.data(), in_.bytes());
    stream_.fill(out_.data(), 0, out_.bytes());  // else an old result could pass for a new one
    stream_.synchronize();
  }

  std::string check(std::uint64_t seed) {
    std::vector<float> found(count);
    stream_.copy(found.data(), out_.data(), out_.bytes());
    stream_.synchronize();
    team_.check();  // a kernel cannot throw: where a peer was missing, this does
    std::vector<float> expected = inputs_of(previous(), seed);
    // Every launch, eager or replayed, is a step, and is checked once.
    const float weight = static_cast<float>(++checks_);
    for (float& value : expected) value *= weight;
    return iridium::first_difference(found, expected);
  }

 private:
  int previous() const { return (team_.rank() + team_.size() - 1) % team_.size(); }

  static std::vector<float> inputs_of(int rank, std::uint64_t seed) {
    std::vector<float> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(input_value(rank, seed, i));
    return values;
  }

  iridium::Context& context_;
  iridium::Stream& stream_;
  Counter counter_;
  // Not the world, by which the probe agrees: a launch that fails takes its team with it.
  iridium::Team team_;
  iridium::SymmetricArray<float> in_, weighed_, out_;
  iridium::SymmetricArray<std::uint32_t> step_, full_;
  std::uint32_t launches_ = 0;  // that the host has submitted, to a stream or to a capture
  std::uint32_t checks_ = 0;
};

bool probe_finds(iridium::Context& context, iridium::Stream& stream, Counter counter,
                 iridium::Verdict expected) {
  WeightedPass pass(context, stream, counter);
  const iridium::ProbeResult result =
      iridium::probe(stream, iridium::target_of(pass), {.team = context.world()});

  const bool as_expected = result.verdict == expected;
  if (context.rank() == 0) {
    std::string line = counter == Counter::on_device ? "steps counted on the device: "
                                                     : "steps counted on the host: ";
    line += iridium::name(result.verdict);
    if (!result.step.empty()) line += " at " + result.step + ": " + result.reason;
    std::printf("%s%s\n", line.c_str(), as_expected ? "" : ", NOT AS EXPECTED");
  }
  return as_expected;
}

int run() {
  iridium::Context context;
  context.prepare<NextStep>();
  context.prepare<SetStep>();
  context.prepare<Weigh>();
  iridium::Stream stream = context.make_stream();
  const bool right = probe_finds(context, stream, Counter::on_device, iridium::Verdict::capturable);
  const bool mistaken =
      probe_finds(context, stream, Counter::on_host, iridium::Verdict::wrong_result);
  context.barrier();
  return right && mistaken ? 0 : 1;
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
