#include "collectives/remote_memory/operation.h"

#include "collectives/case_buffers.h"
#include "iridium/device_barrier.h"
#include "iridium/remote_memory.h"

namespace iridium {
namespace {

/// In a ring, between two barriers: the first allows the accesses, the second tells that they are
/// done.
class RingCase : public OperationCase {
 public:
  RingCase(Context& context, const Team& team, const Arguments& arguments)
      : team_(team), buffers_(context, team, number_argument(arguments), 1) {}

  void set_inputs(std::uint64_t seed) override { buffers_.set_inputs(seed); }
  std::string check(std::uint64_t seed) override { return buffers_.check(seed, {previous()}); }
  std::span<std::byte> outputs() override { return buffers_.outputs(); }
  std::size_t bytes() const override { return buffers_.bytes(); }

 protected:
  int next() const { return (team_.rank() + 1) % team_.size(); }
  int previous() const { return (team_.rank() + team_.size() - 1) % team_.size(); }

  Team team_;
  CaseBuffers buffers_;
};

class PutCase final : public RingCase {
 public:
  using RingCase::RingCase;

  void launch(StreamRef& stream) override {
    device_barrier(stream, team_);
    launch_alone(stream);
    device_barrier(stream, team_);
    stream.copy(buffers_.output.data(), buffers_.shared.data(), buffers_.bytes());
  }
  void launch_alone(StreamRef& stream) override {
    put(stream, team_, buffers_.shared.data(), buffers_.input.data(), buffers_.bytes(), next());
  }
};

class GetCase final : public RingCase {
 public:
  using RingCase::RingCase;

  void launch(StreamRef& stream) override {
    buffers_.read_shared(stream, [&] { launch_alone(stream); });
  }
  void launch_alone(StreamRef& stream) override {
    get(stream, team_, buffers_.output.data(), buffers_.shared.data(), buffers_.bytes(),
        previous());
  }
};

}  // namespace

std::vector<Operation> remote_memory_operations() {
  return {{"put",
           "every member writes its numbers to the next one of a ring",
           {message_bytes},
           prepare_case<PutCase>},
          {"get",
           "every member reads the numbers of the one before it in a ring",
           {message_bytes},
           prepare_case<GetCase>}};
}

}  // namespace iridium
