#include "collectives/signals/operation.h"

#include "collectives/case_buffers.h"
#include "iridium/signals.h"
#include "runtime/access.h"
#include "runtime/team_state.h"

namespace iridium {
namespace {

SymmetricArray<std::uint32_t> make_flags(Context& context, std::size_t count) {
  auto flags = context.allocate<std::uint32_t>(count);
  Stream stream = context.make_stream();
  stream.fill(flags.data(), 0, flags.bytes());
  stream.synchronize();
  // No member signals before every flag is zero.
  context.barrier();
  return flags;
}

/// Every member puts its numbers to the next one in a ring, and takes those of the one before; a
/// signal back allows the next launch.
class RingCase final : public OperationCase {
 public:
  RingCase(Context& context, const Team& team, const Arguments& arguments)
      : team_(team),
        buffers_(context, team, number_argument(arguments), 1),
        flags_(make_flags(context, 2)),
        // A flag is signalled again only when its wait has taken the signal off: setting would do.
        op_(has_native_atomics(team.link()) ? SignalOp::add : SignalOp::set) {}

  void set_inputs(std::uint64_t seed) override { buffers_.set_inputs(seed); }

  void launch(StreamRef& stream) override {
    send(stream);
    stream.copy(buffers_.output.data(), buffers_.shared.data(), buffers_.bytes());
    answer(stream);
  }
  void launch_alone(StreamRef& stream) override {
    send(stream);
    answer(stream);
  }

  std::string check(std::uint64_t seed) override { return buffers_.check(seed, {previous()}); }
  std::span<std::byte> outputs() override { return buffers_.outputs(); }
  std::size_t bytes() const override { return buffers_.bytes(); }

 private:
  void send(StreamRef& stream) {
    std::uint32_t* const arrived = flags_.data();
    put_signal(stream, team_, buffers_.shared.data(), buffers_.input.data(), buffers_.bytes(),
               next(), arrived, 1, op_);
    wait(stream, team_, arrived, 1, {.consume = true, .from = previous()});
  }
  void answer(StreamRef& stream) {
    std::uint32_t* const taken = flags_.data() + 1;
    signal(stream, team_, taken, previous(), 1, op_);
    wait(stream, team_, taken, 1, {.consume = true, .from = next()});
  }
  int next() const { return (team_.rank() + 1) % team_.size(); }
  int previous() const { return (team_.rank() + team_.size() - 1) % team_.size(); }

  Team team_;
  CaseBuffers buffers_;
  SymmetricArray<std::uint32_t> flags_;
  SignalOp op_;
};

/// Every member tells all others that its numbers are there, takes everybody's, and tells them that
/// it has. Alone, signals can come before their flags were waited for: that needs adding.
class AllCase final : public OperationCase {
 public:
  AllCase(Context& context, const Team& team, const Arguments& arguments)
      : team_(team),
        buffers_(context, team, count_argument(arguments, witness_count), team.size()),
        flags_(make_flags(context, 2 * static_cast<std::size_t>(team.size()))) {
    detail::Access::team(team)->require_native_atomics("signal_all with add");
  }

  void set_inputs(std::uint64_t seed) override { buffers_.set_inputs(seed); }

  void launch(StreamRef& stream) override {
    std::uint32_t* const done = flags_.data() + team_.size();
    stream.copy(buffers_.shared.data(), buffers_.input.data(), buffers_.bytes());
    launch_alone(stream);
    buffers_.gather_shared(stream);
    signal_all(stream, team_, done, 1, SignalOp::add);
    wait_all(stream, team_, done, 1, {.consume = true});
  }
  void launch_alone(StreamRef& stream) override {
    std::uint32_t* const ready = flags_.data();
    signal_all(stream, team_, ready, 1, SignalOp::add);
    wait_all(stream, team_, ready, 1, {.consume = true});
  }

  std::string check(std::uint64_t seed) override { return buffers_.check_all(seed); }
  std::span<std::byte> outputs() override { return buffers_.outputs(); }
  std::size_t bytes() const override { return 0; }

 private:
  Team team_;
  CaseBuffers buffers_;
  SymmetricArray<std::uint32_t> flags_;
};

}  // namespace

std::vector<Operation> signal_operations() {
  return {{"put_signal",
           "data, then a signal, to the next member of a ring; signal and wait back",
           {message_bytes},
           prepare_case<RingCase>},
          {"signal_all",
           "every member signals all others and waits for all",
           {witness_count},
           prepare_case<AllCase>}};
}

}  // namespace iridium
