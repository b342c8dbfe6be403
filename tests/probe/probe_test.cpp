// The probe tells right operations from planted offenders, on one rank.
#include "iridium/probe.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <thread>

#include "probe/offenders.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

/// With whatever an offender does wrong, the stream must work afterwards.
ProbeResult probe_and_use(Context& context, CopyOperation& operation,
                          const ProbeOptions& options = {}) {
  Stream stream = context.make_stream();
  const ProbeResult result = probe(stream, target_of(operation), options);
  EXPECT_EQ(stream.capture_status(), CaptureStatus::none);
  stream.fill(operation.output.data(), 0, operation.output.bytes());
  stream.synchronize();
  return result;
}

void expect_found(const ProbeResult& result, Verdict verdict, const std::string& step,
                  const std::string& reason) {
  EXPECT_EQ(name(result.verdict), name(verdict));
  EXPECT_EQ(result.step, step);
  EXPECT_NE(result.reason.find(reason), std::string::npos) << result.reason;
  EXPECT_EQ(result.rank, 0);
}

TEST(Probe, FindsARightOperationCapturable) {
  Context context;
  CopyOperation operation(context);
  const ProbeResult result = probe_and_use(context, operation);
  EXPECT_EQ(result.verdict, Verdict::capturable);
  EXPECT_EQ(result.step, "");
  EXPECT_EQ(result.reason, "");
  EXPECT_EQ(result.rank, -1);
  EXPECT_EQ(result.node_count, 1u);
}

class Allocates final : public CopyOperation {
 public:
  using CopyOperation::CopyOperation;
  void launch(StreamRef& stream) override {
    const auto scratch = context_.allocate<std::uint32_t>(count);
    stream.copy(scratch.data(), input.data(), input.bytes());
    stream.copy(output.data(), scratch.data(), input.bytes());
    scratch.retain_on(stream);
  }
};
TEST(Probe, FindsAnAllocation) {
  Context context;
  Allocates operation(context);
  expect_found(probe_and_use(context, operation), Verdict::not_capturable, "capture",
               "capture_unsupported: allocate(4000 bytes");
}

TEST(Probe, FindsAWait) {
  Context context;
  Synchronizes operation(context);
  expect_found(probe_and_use(context, operation), Verdict::not_capturable, "capture",
               "capture_unsupported: synchronize");
}

/// What it copies from lies in the program's memory, and stays there: captures take such copies,
/// and read the memory when they are replayed.
class CopiesFromPageableMemory final : public CopyOperation {
 public:
  using CopyOperation::CopyOperation;
  void launch(StreamRef& stream) override {
    stream.copy(output.data(), host_.data(), output.bytes());
  }
  void set_inputs(std::uint64_t seed) override {
    CopyOperation::set_inputs(seed);
    std::ranges::copy(values(seed), host_.begin());
  }

 private:
  std::vector<std::uint32_t> host_ = std::vector<std::uint32_t>(count);
};
TEST(Probe, FindsThatCopiesFromPageableMemoryReadItAtTheReplay) {
  Context context;
  CopiesFromPageableMemory operation(context);
  EXPECT_EQ(probe_and_use(context, operation).verdict, Verdict::capturable);
}

/// The same through a buffer that is filled when the operation is submitted.
class StagesInPageableMemory final : public CopyOperation {
 public:
  using CopyOperation::CopyOperation;
  void launch(StreamRef& stream) override {
    std::ranges::copy(values(seed_), staging_.begin());
    stream.copy(output.data(), staging_.data(), output.bytes());
  }
  void set_inputs(std::uint64_t seed) override {
    CopyOperation::set_inputs(seed);
    seed_ = seed;
  }

 private:
  std::uint64_t seed_ = 0;
  std::vector<std::uint32_t> staging_ = std::vector<std::uint32_t>(count);
};
TEST(Probe, FindsAStagingBufferThatOnlyTheSubmissionFills) {
  Context context;
  StagesInPageableMemory operation(context);
  expect_found(probe_and_use(context, operation), Verdict::wrong_result, "replay 1",
               "element 0 is");
}

/// Fills the output with the number of the launch, which a graph repeats.
class BakesACounter final : public CopyOperation {
 public:
  using CopyOperation::CopyOperation;
  void launch(StreamRef& stream) override {
    // Counts what it will have been launched, of which the capture itself is none.
    if (stream.capture_status() == CaptureStatus::none) ++launched_;
    const auto next = stream.capture_status() == CaptureStatus::none ? launched_ : launched_ + 1;
    stream.fill(output.data(), static_cast<unsigned char>(next), output.bytes());
  }
  void set_inputs(std::uint64_t seed) override {
    CopyOperation::set_inputs(seed);
    ++expected_;
  }
  std::string check(std::uint64_t) override {
    return first_difference(read_output(),
                            std::vector<std::uint32_t>(count, expected_ * 0x01010101u));
  }

 private:
  std::uint32_t launched_ = 0;
  std::uint32_t expected_ = 0;
};
TEST(Probe, FindsACounterThatIsBakedIn) {
  Context context;
  BakesACounter operation(context);
  expect_found(probe_and_use(context, operation), Verdict::wrong_result, "replay 2",
               "element 0 is 33686018, not 50529027");
}

class ReadsItsInputAtTheCapture final : public CopyOperation {
 public:
  using CopyOperation::CopyOperation;
  void launch(StreamRef& stream) override {
    stream.fill(output.data(), first_byte_, output.bytes());
  }
  void set_inputs(std::uint64_t seed) override {
    CopyOperation::set_inputs(seed);
    first_byte_ = static_cast<unsigned char>(seed);
  }
  std::string check(std::uint64_t seed) override {
    const auto byte = static_cast<std::uint32_t>(seed & 0xff);
    return first_difference(read_output(), std::vector<std::uint32_t>(count, byte * 0x01010101u));
  }

 private:
  unsigned char first_byte_ = 0;
};
TEST(Probe, FindsAnInputThatIsReadAtTheCapture) {
  Context context;
  ReadsItsInputAtTheCapture operation(context);
  expect_found(probe_and_use(context, operation), Verdict::wrong_result, "replay 1",
               "element 0 is");
}

TEST(Probe, FindsAnOperationThatWorksOnce) {
  Context context;
  WorksOnce operation(context);
  expect_found(probe_and_use(context, operation), Verdict::wrong_result, "replay 2",
               "element 0 is");
}

/// The graph's result is right, but it leaves something behind that eager calls trip over.
class SpoilsEagerCalls final : public CopyOperation {
 public:
  using CopyOperation::CopyOperation;
  void launch(StreamRef& stream) override {
    const bool recorded = stream.capture_status() != CaptureStatus::none;
    if (recorded) stream.call([this] { replayed_ = true; });
    if (recorded || !replayed_) CopyOperation::launch(stream);
  }

 private:
  std::atomic<bool> replayed_ = false;
};
TEST(Probe, FindsAnEagerCallThatAReplaySpoils) {
  Context context;
  SpoilsEagerCalls operation(context);
  expect_found(probe_and_use(context, operation), Verdict::wrong_result,
               "eager call between replays", "element 0 is 4294967295, not");
}

/// Once captured, its eager calls leave a flag that the graph takes for its own.
class SpoilsReplays final : public CopyOperation {
 public:
  explicit SpoilsReplays(Context& context)
      : CopyOperation(context), done_(context.allocate<std::uint32_t>(1)) {
    stream_.fill(done_.data(), 0, done_.bytes());
    stream_.synchronize();
  }
  void launch(StreamRef& stream) override {
    if (stream.capture_status() == CaptureStatus::none) {
      CopyOperation::launch(stream);
      if (captured_) stream.fill(done_.data(), 1, done_.bytes());
      return;
    }
    captured_ = true;
    run_copy_once(context_, stream, output.data(), input.data(), count, done_.data());
    stream.fill(done_.data(), 0, done_.bytes());
  }

 private:
  SymmetricArray<std::uint32_t> done_;
  bool captured_ = false;
};
TEST(Probe, FindsAReplayThatAnEagerCallSpoils) {
  Context context;
  SpoilsReplays operation(context);
  expect_found(probe_and_use(context, operation), Verdict::wrong_result,
               "replay after an eager call", "element 0 is 4294967295, not");
}

/// Whoever launches it twice in a row gets nothing the second time.
class ConsumesItsInput final : public CopyOperation {
 public:
  using CopyOperation::CopyOperation;
  void launch(StreamRef& stream) override {
    CopyOperation::launch(stream);
    stream.fill(input.data(), 0, input.bytes());
  }
};

template <class Wrapped>
class WrappedCase final : public OperationCase {
 public:
  explicit WrappedCase(Context& context) : wrapped_(context) {}
  void set_inputs(std::uint64_t seed) override { wrapped_.set_inputs(seed); }
  void launch(StreamRef& stream) override { wrapped_.launch(stream); }
  std::string check(std::uint64_t seed) override { return wrapped_.check(seed); }
  std::size_t bytes() const override { return wrapped_.input.bytes(); }

 private:
  Wrapped wrapped_;
};

/// As it would stand in the registry.
template <class Wrapped>
Operation registered() {
  Operation operation;
  operation.name = "wrapped";
  operation.prepare = [](Context& context, const Team&, const Arguments&) {
    return std::make_unique<WrappedCase<Wrapped>>(context);
  };
  return operation;
}
TEST(Probe, LaunchesRegisteredOperationsTwiceInARow) {
  Context context;
  Stream stream = context.make_stream();
  const ProbeResult right = probe(context, stream, registered<CopyOperation>(), {});
  EXPECT_EQ(right.verdict, Verdict::capturable) << right.reason;
  EXPECT_EQ(right.node_count, 2u);
  ConsumesItsInput launched_once(context);
  EXPECT_EQ(probe_and_use(context, launched_once).verdict, Verdict::capturable);
  expect_found(probe(context, stream, registered<ConsumesItsInput>(), {}), Verdict::wrong_result,
               "eager call", "element 0 is 0, not");
}

class FailsAtTheReplay final : public CopyOperation {
 public:
  using CopyOperation::CopyOperation;
  void launch(StreamRef& stream) override {
    CopyOperation::launch(stream);
    if (stream.capture_status() == CaptureStatus::none) return;
    stream.call([] { throw std::runtime_error("out of ink"); });
  }
};
TEST(Probe, FindsAReplayThatFails) {
  Context context;
  FailsAtTheReplay operation(context);
  expect_found(probe_and_use(context, operation), Verdict::replay_error, "replay 1", "out of ink");
}

class IsWrongAnyway final : public CopyOperation {
 public:
  using CopyOperation::CopyOperation;
  void launch(StreamRef& stream) override {
    stream.copy(output.data(), input.data(), input.bytes() - 4);
  }
};
TEST(Probe, FindsAnOperationThatIsWrongWithoutACapture) {
  Context context;
  IsWrongAnyway operation(context);
  expect_found(probe_and_use(context, operation), Verdict::wrong_result, "eager call",
               "element 999 is 4294967295, not");
}

/// Every eager call after a capture fails.
class BreaksTheStream final : public CopyOperation {
 public:
  using CopyOperation::CopyOperation;
  void launch(StreamRef& stream) override {
    if (broken_) throw Error(Errc::system, "torn");
    CopyOperation::launch(stream);
    if (stream.capture_status() == CaptureStatus::none) return;
    broken_ = true;
    stream.synchronize();
  }

 private:
  bool broken_ = false;
};
TEST(Probe, FindsAFailedCaptureThatSpoilsTheCallsAfterIt) {
  Context context;
  BreaksTheStream operation(context);
  const ProbeResult result = probe_and_use(context, operation);
  expect_found(result, Verdict::replay_error, "eager call after the failed capture",
               "system: torn (the capture had failed: capture_unsupported: synchronize");
}

/// Submits work, and throws.
class ThrowsHalfWay final : public CopyOperation {
 public:
  using CopyOperation::CopyOperation;
  void launch(StreamRef& stream) override {
    stream.call([this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      is_done = true;
    });
    throw Error(Errc::out_of_memory, "no paper");
  }
  std::atomic<bool> is_done = false;
};
TEST(Probe, LeavesNoWorkBehindWhenALaunchThrows) {
  Context context;
  ThrowsHalfWay operation(context);
  Stream stream = context.make_stream();
  expect_error(Errc::out_of_memory, [&] { probe(stream, target_of(operation)); });
  EXPECT_TRUE(operation.is_done);
}

TEST(Probe, ExpectsHostCallsToBeRefusedAndTheCaptureToGoOn) {
  Operation call;
  call.is_host_call = true;
  ProbeResult result;
  result.verdict = Verdict::not_capturable;
  result.code = Errc::capture_unsupported;
  EXPECT_TRUE(is_expected(call, result));
  EXPECT_FALSE(is_expected(Operation{}, result));
  result.broke_capture = true;
  EXPECT_FALSE(is_expected(call, result));
  result.broke_capture = false;
  result.code = Errc::timeout;
  EXPECT_FALSE(is_expected(call, result));
  EXPECT_TRUE(is_expected(Operation{}, ProbeResult{}));
  EXPECT_FALSE(is_expected(call, ProbeResult{}));
}

TEST(Probe, PassesOnErrorsThatHaveNothingToDoWithCaptures) {
  Context context;
  Throws operation(context);
  Stream stream = context.make_stream();
  const Error error =
      expect_error(Errc::out_of_memory, [&] { probe(stream, target_of(operation)); });
  EXPECT_NE(
      std::string(error.what()).find("rank 0 failed at the eager call: out_of_memory: no paper"),
      std::string::npos)
      << error.what();
}

TEST(Probe, RefusesWhatCannotWork) {
  Context context;
  CopyOperation operation(context);
  Stream stream = context.make_stream();
  for (int missing = 0; missing < 3; ++missing) {
    ProbeTarget target = target_of(operation);
    if (missing == 0) target.launch = nullptr;
    if (missing == 1) target.set_inputs = nullptr;
    if (missing == 2) target.check = nullptr;
    expect_error(Errc::invalid_argument, [&] { probe(stream, target); });
  }
  expect_error(Errc::invalid_argument,
               [&] { probe(stream, target_of(operation), {.replays = 0}); });
  stream.begin_capture();
  expect_error(Errc::invalid_argument, [&] { probe(stream, target_of(operation)); });
  stream.end_capture();
}

TEST(Probe, NamesTheFirstDifference) {
  using Bytes = std::vector<unsigned char>;
  EXPECT_EQ(first_difference(Bytes{1, 2, 3}, Bytes{1, 2, 3}), "");
  EXPECT_EQ(first_difference(Bytes{1, 65, 3}, Bytes{1, 66, 4}), "element 1 is 65, not 66");
  EXPECT_EQ(first_difference(Bytes{1}, Bytes{1, 2}), "1 elements, not 2");
  EXPECT_EQ(first_difference(std::vector<float>{0.5f}, std::vector<float>{1.5f}),
            "element 0 is 0.5, not 1.5");
  EXPECT_EQ(
      first_difference(std::vector<float>{0.1f}, std::vector<float>{std::nextafter(0.1f, 1.0f)}),
      "element 0 is 0.100000001, not 0.100000009");
  const std::vector<double> no_number = {std::nan("")};
  EXPECT_EQ(first_difference(no_number, no_number), "element 0 is nan, not nan");
}

}  // namespace
}  // namespace iridium::test
