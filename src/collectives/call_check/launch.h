// Checked mode's comparison of calls.
#pragma once

#include "iridium/all_to_all.h"
#include "runtime/library_kernels.h"

namespace iridium {

struct CollectiveCall;

/// What some collectives have beside what a `CollectiveCall` says.
struct CallDetails {
  int root = 0;
  std::size_t rows = 0;
  std::size_t in_pitch = 0;
  std::size_t out_pitch = 0;
  const ExchangeParts* parts = nullptr;
};

/// In checked mode, has members compare their calls before anything moves: a difference fails the
/// team, and what follows on the stream does nothing.
void compare_calls(const CollectiveCall& call, const CallDetails& details = {});
/// The same for an operation without buffers.
void compare_calls(StreamRef& stream, const Team& team, const char* operation);

KernelList call_check_kernels();

}  // namespace iridium
