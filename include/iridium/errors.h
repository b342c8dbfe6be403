// Errors: one exception type, one code, a message with the value and the limit.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace iridium {

/// What went wrong, for programs; `Error::what()` says it for people.
enum class Errc {
  invalid_argument,  ///< a value the caller passed, or an environment variable, is not usable
  mismatch,       ///< ranks made different collective calls, or the same one with other arguments
  out_of_memory,  ///< the heap, the machine or the address space has no room
  timeout,        ///< a wait expired; `ranks()` are those that did not arrive
  peer_lost,      ///< a rank died or its connection broke; `ranks()` names it
  peer_left,      ///< a rank destroyed its context while others still needed it
  capture_unsupported,  ///< the call cannot be part of a capture; unless told, the capture goes on
  not_a_member,         ///< this rank is not in the team
  permission,     ///< a socket, directory or peer belongs to somebody else, or a token is wrong
  protocol,       ///< bytes on a control connection are not Iridium's
  unsupported,    ///< this build, backend or version cannot do it
  lane_busy,      ///< two operations at once on one team: one after another, or on two teams
  stream_failed,  ///< work queued earlier on a stream failed; the message carries its reason
  system,         ///< a call to the operating system failed
};

/// The code's name, as it stands in messages: "peer_lost".
std::string_view name(Errc code);

/// The only exception Iridium throws.
class Error : public std::runtime_error {
 public:
  Error(Errc code, const std::string& message, std::vector<int> ranks = {});

  /// What kind of failure this is.
  Errc code() const noexcept { return code_; }
  /// The ranks (of the world) at fault, where the failure has such: missing, lost, or disagreeing.
  const std::vector<int>& ranks() const noexcept { return ranks_; }

 private:
  Errc code_;
  std::vector<int> ranks_;
};

}  // namespace iridium
