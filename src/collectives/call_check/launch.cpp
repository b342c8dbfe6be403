#include "collectives/call_check/launch.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "collectives/call.h"
#include "collectives/call_check/kernels.h"

namespace iridium {
namespace {

CallValue text(std::string_view letters) {
  CallValue value;
  std::memcpy(value.words, letters.data(), std::min(letters.size(), sizeof value.words - 1));
  return value;
}
CallValue number(std::size_t value) {
  return {{value, 0, 0}};
}

bool is_checked(const Team& team) {
  return detail::Access::team(team)->core().checked();
}

/// Where a symmetric buffer begins, counted from the segment's start.
CallValue heap_offset(const CollectiveCall& call, const void* buffer) {
  const Heap& heap = detail::Access::team(call.team)->core().heap();
  return number(static_cast<std::size_t>(static_cast<const std::byte*>(buffer) - heap.segment()));
}

CallRecord record_of(const CollectiveCall& call, const CallDetails& details) {
  CallRecord record;
  record[CallTerm::operation] = text(call.operation);
  record[CallTerm::algorithm] = text(call.choice.algorithm);
  record[CallTerm::memory] = text(call.symmetric ? "symmetric" : "plain");
  record[CallTerm::type] = text(name(call.type));
  record[CallTerm::reduction] = text(name(call.op));
  record[CallTerm::count] = number(call.count);
  record[CallTerm::root] = number(static_cast<std::size_t>(details.root));
  record[CallTerm::rows] = number(details.rows);
  record[CallTerm::blocks] = number(static_cast<std::size_t>(call.choice.blocks));
  record[CallTerm::tile] = number(static_cast<std::size_t>(call.choice.tile));
  if (call.symmetric && call.count != 0) {
    record[CallTerm::in_offset] = heap_offset(call, call.in);
    record[CallTerm::out_offset] = heap_offset(call, call.out);
    record[CallTerm::in_pitch] = number(details.in_pitch);
    record[CallTerm::out_pitch] = number(details.out_pitch);
  }
  return record;
}

void launch_check(StreamRef& stream, const Team& team, const char* operation, CallCheck check) {
  launch_on_team(stream, team, operation, {.blocks = 1, .resident = true}, [&](const Lane& lane) {
    check.lane = lane;
    return check;
  });
}

}  // namespace

void compare_calls(const CollectiveCall& call, const CallDetails& details) {
  if (!is_checked(call.team)) return;
  CallCheck check = {{}, record_of(call, details), {}};
  if (details.parts != nullptr) {
    const std::size_t element = size_of(call.type);
    for (std::size_t i = 0; i < details.parts->sent.size(); ++i) {
      check.mine.sent[i] = details.parts->sent[i].count * element;
      check.received[i] = details.parts->received[i].count * element;
    }
  }
  launch_check(call.stream, call.team, call.operation, check);
}

void compare_calls(StreamRef& stream, const Team& team, const char* operation) {
  if (!is_checked(team)) return;
  CallCheck check = {};
  check.mine[CallTerm::operation] = text(operation);
  launch_check(stream, team, operation, check);
}

KernelList call_check_kernels() {
  return {entry_of<CallCheck>()};
}

}  // namespace iridium
