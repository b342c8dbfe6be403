// Operations that work eagerly, each with a mistake that shows in a graph, or with none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "iridium/iridium.h"
#include "probe/offender_kernels.h"

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

// Offenders of more than one file.

class Synchronizes final : public CopyOperation {
 public:
  using CopyOperation::CopyOperation;
  void launch(StreamRef& stream) override {
    CopyOperation::launch(stream);
    stream.synchronize();
  }
};

/// Whoever replays it a second time gets the result of the first.
class WorksOnce final : public CopyOperation {
 public:
  explicit WorksOnce(Context& context)
      : CopyOperation(context),
        kept_(context.allocate<std::uint32_t>(count)),
        done_(context.allocate<std::uint32_t>(1)) {
    stream_.fill(done_.data(), 0, done_.bytes());
    stream_.synchronize();
  }
  void launch(StreamRef& stream) override {
    if (stream.capture_status() == CaptureStatus::none) return CopyOperation::launch(stream);
    run_copy_once(context_, stream, kept_.data(), input.data(), count, done_.data());
    stream.copy(output.data(), kept_.data(), kept_.bytes());
  }

 private:
  SymmetricArray<std::uint32_t> kept_;
  SymmetricArray<std::uint32_t> done_;
};

class Throws final : public CopyOperation {
 public:
  using CopyOperation::CopyOperation;
  void launch(StreamRef&) override { throw Error(Errc::out_of_memory, "no paper"); }
};

}  // namespace iridium::test
