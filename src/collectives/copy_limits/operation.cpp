#include "collectives/copy_limits/operation.h"

#include "collectives/case_buffers.h"
#include "collectives/copy_limits/launch.h"

namespace iridium {
namespace {

const Parameter blocks_parameter = {"blocks", {"132", "1"}};

int blocks_argument(const Arguments& arguments) {
  constexpr std::size_t most = 65'535;
  const std::size_t blocks = count_argument(arguments, blocks_parameter);
  if (blocks > most)
    throw Error(Errc::invalid_argument, "blocks is over the limit of " + std::to_string(most));
  return static_cast<int>(blocks);
}

/// output = input, on this rank.
class CopyCase : public OperationCase {
 public:
  CopyCase(Context& context, const Team& team, const Arguments& arguments)
      : place_(team.is_member() ? team.rank() : -1),
        buffers_(context, team, number_argument(arguments), 1) {}

  void set_inputs(std::uint64_t seed) override { buffers_.set_inputs(seed); }
  std::string check(std::uint64_t seed) override { return buffers_.check(seed, {place_}); }
  std::span<std::byte> outputs() override { return buffers_.outputs(); }
  std::size_t bytes() const override { return buffers_.bytes(); }

 protected:
  int place_;
  CaseBuffers buffers_;
};

class MemoryCopyCase final : public CopyCase {
 public:
  using CopyCase::CopyCase;

  void launch(StreamRef& stream) override {
    stream.copy(buffers_.output.data(), buffers_.input.data(), buffers_.bytes());
  }
};

class CopyKernelCase final : public CopyCase {
 public:
  CopyKernelCase(Context& context, const Team& team, const Arguments& arguments)
      : CopyCase(context, team, arguments),
        context_(context),
        blocks_(blocks_argument(arguments)) {}

  void launch(StreamRef& stream) override {
    launch_plain_copy(context_, stream, buffers_.output.data(), buffers_.input.data(),
                      buffers_.count(), blocks_);
  }

 private:
  const Context& context_;
  int blocks_;
};

/// An all-gather by the stream's copies; the barriers that it would need are not measured.
class GatherCopiesCase final : public OperationCase {
 public:
  GatherCopiesCase(Context& context, const Team& team, const Arguments& arguments)
      : team_(team), buffers_(context, team, number_argument(arguments), team.size()) {}

  void set_inputs(std::uint64_t seed) override { buffers_.set_inputs(seed); }
  std::string check(std::uint64_t seed) override { return buffers_.check_all(seed); }
  std::span<std::byte> outputs() override { return buffers_.outputs(); }
  std::size_t bytes() const override {
    return static_cast<std::size_t>(team_.size()) * buffers_.bytes();
  }
  double bus_factor() const override { return 1.0 * (team_.size() - 1) / team_.size(); }

  void launch(StreamRef& stream) override {
    buffers_.read_shared(stream, [&] { launch_alone(stream); });
  }
  void launch_alone(StreamRef& stream) override { buffers_.gather_shared(stream); }

 private:
  Team team_;
  CaseBuffers buffers_;
};

}  // namespace

std::vector<Operation> copy_limit_operations() {
  return {{"copy_kernel",
           "a kernel copies this rank's numbers",
           {message_bytes, blocks_parameter},
           prepare_case<CopyKernelCase>},
          {"memory_copy",
           "the stream copies this rank's numbers",
           {message_bytes},
           prepare_case<MemoryCopyCase>},
          {"gather_copies",
           "the stream copies every member's numbers",
           {message_bytes},
           prepare_case<GatherCopiesCase>}};
}

}  // namespace iridium
