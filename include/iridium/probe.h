// The capture probe: proves on this machine that an operation can be captured in a graph, and that
// its replays are right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "iridium/errors.h"
#include "iridium/operations.h"
#include "iridium/stream.h"
#include "iridium/team.h"

namespace iridium {

/// What a probe has found.
enum class Verdict {
  capturable,      ///< it was captured, and every launch gave the right result
  not_capturable,  ///< a call was refused or failed during the capture, or broke it
  wrong_result,    ///< a launch gave another result than the reference
  replay_error,    ///< a launch after the capture failed
  unsupported,     ///< a registered operation that link or device cannot do: nothing was tried
};
/// As it stands in tables: "not_capturable".
std::string_view name(Verdict verdict);

/// An operation, and what it takes to try it out. The capture calls `launch` alone; every other try
/// calls `set_inputs`, launches the operation once, eagerly or by the graph, and calls `check`.
struct ProbeTarget {
  /// Submits the operation to the stream. Called eagerly and during a capture.
  std::function<void(StreamRef& stream)> launch;
  /// Gives the inputs new values, drawn from `seed`, and makes old outputs recognisable. Waits
  /// until that is done.
  std::function<void(std::uint64_t seed)> set_inputs;
  /// Compares the outputs with a reference: empty when they are right for `seed`, else the first
  /// difference (see `first_difference`). What this rank launched is done; that peers have written
  /// what they write here is the operation's own matter.
  std::function<std::string(std::uint64_t seed)> check;
};

/// The members of this name of `operation`, which must live as long as the target.
template <class T>
ProbeTarget target_of(T& operation) {
  return {[&operation](StreamRef& stream) { operation.launch(stream); },
          [&operation](std::uint64_t seed) { operation.set_inputs(seed); },
          [&operation](std::uint64_t seed) { return operation.check(seed); }};
}

struct ProbeOptions {
  /// The members that launch the operation together: all of them probe it at the same time, and get
  /// the same answer. They agree on it by host calls on this team, so better let the operation use
  /// another one: a launch that fails takes its team with it. Without a team, this rank is alone.
  std::optional<Team> team = {};
  int replays = 3;         ///< before eager calls come in between
  std::uint64_t seed = 1;  ///< of the inputs
};

struct ProbeResult {
  Verdict verdict = Verdict::capturable;
  /// Where it was found: "eager call", "capture", "replay 2", "eager call between replays", "replay
  /// after an eager call", "preparation". Empty when there is nothing to tell.
  std::string step = {};
  /// The runtime's error, or the first difference.
  std::string reason = {};
  int rank = -1;                  ///< place in the team, or 0: who found it; -1: nobody, or all
  std::optional<Errc> code = {};  ///< of the error, where it was Iridium's
  bool broke_capture = false;     ///< a call has broken the capture, not only been refused by it
  std::size_t node_count = 0;     ///< of the graph on this rank, where there is one
};

/// Runs the operation, captures it, replays it with fresh inputs each time, and replays it again
/// between eager calls; every result is compared with the reference. Whether it can be captured is
/// what the runtime says: its errors and the status of the capture. Leaves the stream usable, also
/// when the capture failed, which it tries. Collective over `options.team`; as long as the team
/// lives, all members get the same answer.
///
/// Launches do not follow each other closely: members wait for each other in between. To try that,
/// let `launch` submit the operation twice.
///
/// Throws the error of an operation that throws before the capture, on every member.
ProbeResult probe(StreamRef& stream, const ProbeTarget& target, const ProbeOptions& options = {});

/// Probes a registered operation on a new team of all ranks, two launches in a row as one.
/// Collective over the world.
ProbeResult probe(Context& context, StreamRef& stream, const Operation& operation,
                  const Arguments& arguments);

/// What an operation's probe must find.
inline Verdict expected_verdict(const Operation& operation) {
  return operation.is_host_call ? Verdict::not_capturable : Verdict::capturable;
}
/// Whether it has; a host call must be refused, and leave the capture valid. That there is nothing
/// to capture where the link cannot do the operation is nobody's fault.
inline bool is_expected(const Operation& operation, const ProbeResult& result) {
  if (result.verdict == Verdict::unsupported) return true;
  if (result.verdict != expected_verdict(operation)) return false;
  return !operation.is_host_call ||
         (result.code == Errc::capture_unsupported && !result.broke_capture);
}

/// "element 3 is 5, not 7", or empty when the numbers are the same. What is no number (NaN) is
/// never the same.
template <class T>
std::string first_difference(const std::vector<T>& found, const std::vector<T>& expected) {
  if (found.size() != expected.size())
    return std::to_string(found.size()) + " elements, not " + std::to_string(expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == expected[i]) continue;
    std::ostringstream text;
    text.precision(std::numeric_limits<T>::max_digits10);
    // A byte is a number here, not a letter.
    text << "element " << i << " is " << +found[i] << ", not " << +expected[i];
    return text.str();
  }
  return {};
}

}  // namespace iridium
