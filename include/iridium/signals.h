// Signals between the streams of a team; the functions of the same names for kernels are in
// device/signal.h.
//
// Flags are 32-bit words of a symmetric array. `flag` and `flags` are this rank's addresses of
// them, also where a peer's are meant. Calls return at once and can be captured; a captured call
// has the same value at every replay, so replays want `WaitOptions::consume`, and `SignalOp::add`
// where several signals can come before a wait. Adding throws `unsupported` where the team's link
// has no native atomics (`Team::link`). All throw `not_a_member` on other ranks, `invalid_argument`
// for flags off the heap or a place that does not exist, and the reason when the team has failed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iridium/device/signal.h"
#include "iridium/stream.h"
#include "iridium/team.h"

namespace iridium {

struct WaitOptions {
  Compare compare = Compare::at_least;
  /// Afterwards takes the value off the flag again: a flag that signals add to and waits take from
  /// works in replays.
  bool consume = false;
  int from = -1;  ///< place of the signaller if known: errors name it
};

/// Signals the flag of the member at `place`, after all earlier work of the stream.
void signal(StreamRef& stream, const Team& team, std::uint32_t* flag, int place,
            std::uint32_t value, SignalOp op = SignalOp::set);

/// Later work of the stream runs when this rank's flag satisfies `value`; it sees what the
/// signaller had written. Expires with the context's timeout, which fails the team.
void wait(StreamRef& stream, const Team& team, std::uint32_t* flag, std::uint32_t value,
          const WaitOptions& options = {});

/// Signals this rank's flag, flags[my place], of every member.
void signal_all(StreamRef& stream, const Team& team, std::uint32_t* flags, std::uint32_t value,
                SignalOp op = SignalOp::set);

/// Waits for every member's flag; `WaitOptions::from` means nothing here.
void wait_all(StreamRef& stream, const Team& team, std::uint32_t* flags, std::uint32_t value,
              const WaitOptions& options = {});

/// Copies `bytes` bytes from `from`, memory that kernels of this rank reach, to where the member at
/// `place` has its counterpart of `to`, then signals its flag.
void put_signal(StreamRef& stream, const Team& team, void* to, const void* from, std::size_t bytes,
                int place, std::uint32_t* flag, std::uint32_t value, SignalOp op = SignalOp::set);

}  // namespace iridium
