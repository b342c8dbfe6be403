#include "collectives/all_to_all/launch.h"

#include "collectives/all_to_all/kernels.h"

namespace iridium {
namespace {

using Byte = std::uint8_t;

template <class Parts>
void launch_staged(const CollectiveCall& call, const Parts& parts) {
  launch_call(call, [&](const Lane& lane) {
    const auto members = static_cast<std::size_t>(lane.peers().size());
    return StagedAllToAll<Parts>{lane, call.input<Byte>(), call.output<Byte>(),
                                 staged_rounds<Byte>(call, call.bytes(), members), parts};
  });
}

}  // namespace

void launch_staged_all_to_all(const CollectiveCall& call) {
  launch_staged(call, EqualParts{call.bytes()});
}

void launch_staged_all_to_all(const CollectiveCall& call, const ExchangeParts& parts) {
  const std::size_t element = size_of(call.type);
  GivenParts given = {};
  for (std::size_t i = 0; i < parts.sent.size(); ++i) {
    given.sent[i] = {parts.sent[i].first * element, parts.sent[i].count * element};
    given.received[i] = {parts.received[i].first * element, parts.received[i].count * element};
  }
  launch_staged(call, given);
}

void launch_direct_all_to_all(const CollectiveCall& call) {
  launch_call(call, [&](const Lane& lane) {
    return DirectAllToAll{lane, call.input<Byte>(), call.output<Byte>(),
                          one_round(call, call.bytes(), vector_elements<Byte>)};
  });
}

KernelList all_to_all_kernels() {
  return {entry_of<StagedAllToAll<EqualParts>>(), entry_of<StagedAllToAll<GivenParts>>(),
          entry_of<DirectAllToAll>()};
}

}  // namespace iridium
