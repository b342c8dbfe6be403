// Operations that work eagerly, each with a mistake that shows in a graph, or with none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "iridium/iridium.h"

namespace iridium::test {

/// output = input, on this rank: a right operation, whose parts offenders replace.
class CopyOperation {
 public:
  explicit CopyOperation(Context& context)
      : context_(context),
        stream_(context.make_stream()),
        input(context.allocate<std::uint32_t>(count)),
        output(context.allocate<std::uint32_t>(count)) {}
  virtual ~CopyOperation() = default;

  virtual void launch(StreamRef& stream) {
    stream.copy(output.data(), input.data(), input.bytes());
  }
  virtual void set_inputs(std::uint64_t seed) {
    const std::vector<std::uint32_t> fresh = values(seed);
    stream_.copy(input.data(), fresh.data(), input.bytes());
    stream_.fill(output.data(), 0xff, output.bytes());
    stream_.synchronize();
  }
  virtual std::string check(std::uint64_t seed) {
    return first_difference(read_output(), values(seed));
  }

 protected:
  static constexpr std::size_t count = 1000;

  /// Drawn from the seed; all kinds of bits.
  static std::vector<std::uint32_t> values(std::uint64_t seed) {
    std::vector<std::uint32_t> values;
    std::uint64_t state = seed;
    for (std::size_t i = 0; i < count; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      values.push_back(static_cast<std::uint32_t>(state >> 33));
    }
    return values;
  }
  std::vector<std::uint32_t> read_output() {
    std::vector<std::uint32_t> found(count);
    stream_.copy(found.data(), output.data(), output.bytes());
    stream_.synchronize();
    return found;
  }

  Context& context_;
  Stream stream_;

 public:
  SymmetricArray<std::uint32_t> input;
  SymmetricArray<std::uint32_t> output;
};

}  // namespace iridium::test
