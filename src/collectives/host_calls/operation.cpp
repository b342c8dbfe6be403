#include "collectives/host_calls/operation.h"

#include <functional>
#include <utility>

namespace iridium {
namespace {

using HostCall = std::function<void(Context&, Team&)>;

class HostCallCase final : public OperationCase {
 public:
  HostCallCase(Context& context, const Team& team, HostCall call)
      : context_(context), team_(team), call_(std::move(call)) {}

  void set_inputs(std::uint64_t) override {}
  void launch(StreamRef&) override { call_(context_, team_); }
  std::string check(std::uint64_t) override { return {}; }
  std::size_t bytes() const override { return 0; }

 private:
  Context& context_;
  Team team_;
  HostCall call_;
};

Operation host_call(std::string name, std::string summary, HostCall call) {
  Operation operation;
  operation.prepare = [call = std::move(call)](Context& context, const Team& team,
                                               const Arguments&) {
    return std::make_unique<HostCallCase>(context, team, call);
  };
  operation.name = std::move(name);
  operation.summary = std::move(summary);
  operation.is_host_call = true;
  return operation;
}

}  // namespace

std::vector<Operation> host_call_operations() {
  return {host_call("allocate", "a symmetric array is allocated and freed",
                    [](Context& context, Team&) { context.allocate<float>(1); }),
          host_call("host_barrier", "the hosts of all members meet",
                    [](Context&, Team& team) { team.barrier(); }),
          host_call("make_team", "a team is made and dropped",
                    [](Context& context, Team& team) { context.make_team(team.ranks()); })};
}

}  // namespace iridium
