#include "iridium/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "iridium/context.h"
#include "iridium/errors.h"
#include "runtime/access.h"
#include "runtime/team_state.h"

namespace iridium {
namespace {

/// What a member has found so far, as it is told to the others.
struct Finding {
  enum class Kind : int { nothing, failed_eagerly, not_capturable, wrong_result, replay_error };
  Kind kind = Kind::nothing;
  Errc code = Errc::system;  ///< of an error
  char step[40] = {};
  char reason[600] = {};
};

template <std::size_t size>
void set_text(char (&to)[size], std::string_view text) {
  // Cut between characters, not inside one.
  std::size_t length = std::min(text.size(), size - 1);
  if (length < text.size())
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  std::memcpy(to, text.data(), length);
  to[length] = 0;
}

Verdict verdict_of(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::not_capturable:
      return Verdict::not_capturable;
    case Finding::Kind::wrong_result:
      return Verdict::wrong_result;
    case Finding::Kind::replay_error:
      return Verdict::replay_error;
    default:
      return Verdict::capturable;
  }
}

/// One probe of one operation.
class Probe {
 public:
  Probe(StreamRef& stream, const ProbeTarget& target, const ProbeOptions& options)
      : stream_(stream), target_(target), options_(options), seed_(options.seed) {}

  ProbeResult run() {
    const auto eager = [this] { target_.launch(stream_); };
    const auto replay = [this] { stream_.launch(*graph_); };
    if (try_once("eager call", Finding::Kind::failed_eagerly, eager)) return result();
    if (capture()) {
      try_after_failed_capture();
      return result();
    }
    for (int i = 1; i <= options_.replays; ++i)
      if (try_once(fmt::format("replay {}", i), Finding::Kind::replay_error, replay))
        return result();
    for (int i = 0; i < 2; ++i) {
      if (try_once("eager call between replays", Finding::Kind::replay_error, eager) ||
          try_once("replay after an eager call", Finding::Kind::replay_error, replay))
        return result();
    }
    return result();
  }

 private:
  /// Runs `launch` on fresh inputs and looks at the outputs; true when a member found something.
  template <class Launch>
  bool try_once(const std::string& step, Finding::Kind on_error, Launch launch) {
    note_errors(step, on_error, [&] { target_.set_inputs(++seed_); });
    // Nobody launches before all have their inputs, and nobody when one has failed.
    if (agree(step, on_error)) return true;
    note_errors(step, on_error, [&] {
      launch();
      stream_.synchronize();
      const std::string difference = target_.check(seed_);
      if (!difference.empty()) note(Finding::Kind::wrong_result, step, difference);
    });
    return agree(step, on_error);
  }

  /// True when a member could not.
  bool capture() {
    const auto kind = Finding::Kind::not_capturable;
    note_errors("capture", kind, [&] { stream_.begin_capture(); });
    if (found_.kind == Finding::Kind::nothing) {
      note_errors("capture", kind, [&] { target_.launch(stream_); });
      // Also after a failed launch: the stream must run again. An error of the launch came first.
      note_errors("capture", kind, [&] { graph_ = stream_.end_capture(); });
    }
    if (!agree("capture", Finding::Kind::failed_eagerly)) return false;
    graph_.reset();
    return true;
  }

  /// The stream must still be usable, whatever has broken the capture.
  void try_after_failed_capture() {
    const Finding before = std::exchange(agreed_, {});
    const int rank = rank_;
    found_ = {};
    const bool failed = try_once("eager call after the failed capture", Finding::Kind::replay_error,
                                 [this] { target_.launch(stream_); });
    const std::string afterwards = failed ? agreed_.reason : "";
    agreed_ = before;
    rank_ = rank;
    if (failed)
      set_text(agreed_.reason,
               fmt::format("{}; and eager calls fail afterwards: {}", before.reason, afterwards));
  }

  template <class Body>
  void note_errors(std::string_view step, Finding::Kind kind, Body body) {
    try {
      body();
    } catch (const Error& error) {
      note(kind, step, error.what(), error.code());
    } catch (const std::exception& error) {
      note(kind, step, error.what());
    } catch (...) {
      note(kind, step, "an exception of unknown type");
    }
  }

  /// The first one counts.
  void note(Finding::Kind kind, std::string_view step, std::string_view reason,
            Errc code = Errc::system) {
    if (found_.kind != Finding::Kind::nothing) return;
    found_.kind = kind;
    found_.code = code;
    set_text(found_.step, step);
    set_text(found_.reason, reason);
  }

  /// Everybody takes over what the first member of the team has found; true when one has.
  /// `on_error`: what it means when they cannot agree any more.
  bool agree(std::string_view step, Finding::Kind on_error) {
    if (options_.team) {
      // An operation that has failed the very team they agree by has failed it for all members.
      note_errors(step, on_error, [&] { take_over_first(); });
    }
    if (found_.kind != Finding::Kind::nothing && agreed_.kind == Finding::Kind::nothing) {
      agreed_ = found_;
      rank_ = options_.team ? options_.team->rank() : 0;
    }
    if (agreed_.kind == Finding::Kind::failed_eagerly)
      throw Error(agreed_.code, fmt::format("probe: rank {} failed at {}, without a graph: {}",
                                            rank_, agreed_.step, agreed_.reason));
    return agreed_.kind != Finding::Kind::nothing;
  }

  void take_over_first() {
    const auto* bytes = reinterpret_cast<const std::byte*>(&found_);
    // Members whose kernels wait in vain for one that launched nothing come a timeout later.
    const auto parts = detail::Access::team(*options_.team)
                           ->exchange("probe", Bytes(bytes, bytes + sizeof(Finding)), 2);
    for (std::size_t place = 0; place < parts.size(); ++place) {
      Finding theirs;
      std::memcpy(&theirs, parts[place].data.data(), sizeof(Finding));
      if (theirs.kind == Finding::Kind::nothing) continue;
      agreed_ = theirs;
      rank_ = static_cast<int>(place);
      return;
    }
  }

  ProbeResult result() const {
    ProbeResult result;
    result.verdict = verdict_of(agreed_.kind);
    result.step = agreed_.step;
    result.reason = agreed_.reason;
    if (result.verdict != Verdict::capturable) result.rank = rank_;
    if (graph_) result.operations = graph_->node_count();
    return result;
  }

  StreamRef& stream_;
  const ProbeTarget& target_;
  const ProbeOptions& options_;
  std::uint64_t seed_;
  std::optional<Graph> graph_;
  Finding found_;   ///< by this member
  Finding agreed_;  ///< by the first member that has found something
  int rank_ = 0;    ///< its place
};

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::capturable:
      return "capturable";
    case Verdict::not_capturable:
      return "not_capturable";
    case Verdict::wrong_result:
      return "wrong_result";
    case Verdict::replay_error:
      return "replay_error";
  }
  return "unknown";
}

ProbeResult probe(StreamRef& stream, const ProbeTarget& target, const ProbeOptions& options) {
  if (!target.launch || !target.set_inputs || !target.check)
    throw Error(Errc::invalid_argument, "probe: launch, set_inputs and check must all be given");
  if (options.replays < 1)
    throw Error(Errc::invalid_argument,
                fmt::format("ProbeOptions::replays is {}; expected 1 or more", options.replays));
  if (stream.capture_status() != CaptureStatus::none)
    throw Error(Errc::invalid_argument, "probe: the stream is capturing already");
  return Probe(stream, target, options).run();
}

ProbeResult probe(Context& context, StreamRef& stream, const Operation& operation,
                  const Arguments& arguments) {
  // A team of its own: one that the operation ends is of no use to others.
  const Team team = context.make_team(context.world().ranks());
  const std::unique_ptr<OperationCase> prepared = operation.prepare(context, team, arguments);
  ProbeTarget target = target_of(*prepared);
  // Twice, since a launch must not overtake what the one before it has left behind.
  target.launch = [&](StreamRef& on) {
    prepared->launch(on);
    prepared->launch(on);
  };
  target.check = [&](std::uint64_t seed) {
    team.check();
    return prepared->check(seed);
  };
  return probe(stream, target, {.team = context.world()});
}

}  // namespace iridium
