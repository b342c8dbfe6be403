#include "collectives/device_barrier/operation.h"

#include "collectives/case_buffers.h"
#include "iridium/device_barrier.h"

namespace iridium {
namespace {

/// Every member writes its own array and, after a barrier, reads everybody's; a second barrier
/// keeps a fast member's next launch away from them.
class BarrierCase final : public OperationCase {
 public:
  BarrierCase(Context& context, const Team& team, const Arguments& arguments)
      : team_(team),
        buffers_(context, team, count_argument(arguments, witness_count), team.size()) {}

  void set_inputs(std::uint64_t seed) override { buffers_.set_inputs(seed); }

  void launch(StreamRef& stream) override {
    stream.copy(buffers_.shared.data(), buffers_.input.data(), buffers_.bytes());
    device_barrier(stream, team_);
    buffers_.gather_shared(stream);
    device_barrier(stream, team_);
  }

  void launch_alone(StreamRef& stream) override { device_barrier(stream, team_); }

  std::string check(std::uint64_t seed) override { return buffers_.check_all(seed); }
  std::span<std::byte> outputs() override { return buffers_.outputs(); }

  std::size_t bytes() const override { return 0; }

 private:
  Team team_;
  CaseBuffers buffers_;
};

}  // namespace

Operation device_barrier_operation() {
  return {"device_barrier",
          "a barrier between streams: writes before it are seen after it",
          {witness_count},
          prepare_case<BarrierCase>};
}

}  // namespace iridium
