#include "iridium/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "iridium/bootstrap.h"
#include "iridium/context.h"
#include "iridium/errors.h"

namespace iridium {
namespace {

/// What a member has found so far, as it is told to the others.
struct Finding {
  enum class Kind : int { nothing, failed_eagerly, not_capturable, wrong_result, replay_error };
  Kind kind = Kind::nothing;
  bool has_code = false;
  bool broke_capture = false;
  Errc code = Errc::system;  ///< of an error that is Iridium's
  std::uint64_t ranks = 0;   ///< of the error, a bit per rank
  char asked[40] = {};       ///< the step that members agree about
  char step[40] = {};        ///< at which it was found
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

template <std::size_t size>
void append(char (&to)[size], std::string_view text) {
  set_text(to, std::string(to) + std::string(text));
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
    note_errors(step, on_error, launch);
    // Also after a launch that failed half-way: nothing may run any more when this returns.
    note_errors(step, on_error, [&] { stream_.synchronize(); });
    if (found_.kind == Finding::Kind::nothing)
      note_errors(step, on_error, [&] {
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
      const bool is_broken = stream_.capture_status() != CaptureStatus::active;
      // Also after a failed launch: the stream must run again.
      const bool has_failed = found_.kind != Finding::Kind::nothing;
      try {
        graph_ = stream_.end_capture();
      } catch (const Error& error) {
        note(kind, "capture", error.what(), &error);
        if (has_failed) append(found_.reason, fmt::format("; {}", error.what()));
      }
      found_.broke_capture = is_broken;
    }
    if (!agree("capture", Finding::Kind::failed_eagerly)) return false;
    graph_.reset();
    return true;
  }

  /// The stream must still be usable, whatever has become of the capture.
  void try_after_failed_capture() {
    const Finding before = std::exchange(agreed_, {});
    const int rank = rank_;
    found_ = {};
    if (try_once("eager call after the failed capture", Finding::Kind::replay_error,
                 [this] { target_.launch(stream_); })) {
      append(agreed_.reason, fmt::format(" (the capture had failed: {})", before.reason));
      return;
    }
    agreed_ = before;
    rank_ = rank;
  }

  template <class Body>
  void note_errors(std::string_view step, Finding::Kind kind, Body body) {
    try {
      body();
    } catch (const Error& error) {
      note(kind, step, error.what(), &error);
    } catch (const std::exception& error) {
      note(kind, step, error.what());
    } catch (...) {
      note(kind, step, "an exception of unknown type");
    }
  }

  /// The first one counts.
  void note(Finding::Kind kind, std::string_view step, std::string_view reason,
            const Error* error = nullptr) {
    if (found_.kind != Finding::Kind::nothing) return;
    found_.kind = kind;
    set_text(found_.step, step);
    set_text(found_.reason, reason);
    if (error == nullptr) return;
    found_.has_code = true;
    found_.code = error->code();
    for (const int rank : error->ranks()) found_.ranks |= std::uint64_t{1} << rank;
  }

  /// Everybody takes over what the first member of the team has found; true when one has.
  /// `on_error`: what it means when they cannot agree any more.
  bool agree(const std::string& step, Finding::Kind on_error) {
    if (options_.team) {
      const bool had_found = found_.kind != Finding::Kind::nothing;
      try {
        take_over_first(step);
      } catch (const Error& error) {
        // An operation that has failed the very team they agree by has failed it for all members.
        note(on_error, step, error.what(), &error);
        if (had_found)
          append(found_.reason, fmt::format("; the members could not agree: {}", error.what()));
      }
    }
    if (found_.kind != Finding::Kind::nothing && agreed_.kind == Finding::Kind::nothing) {
      agreed_ = found_;
      rank_ = options_.team ? options_.team->rank() : 0;
    }
    if (agreed_.kind == Finding::Kind::failed_eagerly) throw_agreed();
    return agreed_.kind != Finding::Kind::nothing;
  }

  [[noreturn]] void throw_agreed() const {
    std::vector<int> ranks;
    for (int rank = 0; rank < max_ranks; ++rank)
      if ((agreed_.ranks >> rank & 1) != 0) ranks.push_back(rank);
    throw Error(
        agreed_.code,
        fmt::format("probe: rank {} failed at the {}: {}", rank_, agreed_.step, agreed_.reason),
        ranks);
  }

  void take_over_first(const std::string& step) {
    set_text(found_.asked, step);
    // Members whose kernels wait in vain for one that launched nothing come a timeout later.
    const std::vector<Finding> all = Team(*options_.team).all_gather(found_, 2);
    for (std::size_t place = 0; place < all.size(); ++place) {
      if (all[place].asked != std::string_view(found_.asked))
        throw Error(Errc::mismatch,
                    fmt::format("members are at different steps of the probe: rank {} at {}, this "
                                "one at {}",
                                place, all[place].asked, step));
      if (all[place].kind == Finding::Kind::nothing || agreed_.kind != Finding::Kind::nothing)
        continue;
      agreed_ = all[place];
      rank_ = static_cast<int>(place);
    }
  }

  ProbeResult result() const {
    ProbeResult result;
    result.verdict = verdict_of(agreed_.kind);
    result.step = agreed_.step;
    result.reason = agreed_.reason;
    if (result.verdict != Verdict::capturable) result.rank = rank_;
    if (agreed_.has_code) result.code = agreed_.code;
    result.broke_capture = agreed_.broke_capture;
    if (graph_) result.node_count = graph_->node_count();
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
    case Verdict::unsupported:
      return "unsupported";
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
  if (options.team) static_cast<void>(options.team->rank());  // throws on others than members
  return Probe(stream, target, options).run();
}

ProbeResult probe(Context& context, StreamRef& stream, const Operation& operation,
                  const Arguments& arguments) {
  // A team of its own: one that the operation ends is of no use to others.
  const Team team = context.make_team(context.world().ranks());
  std::unique_ptr<OperationCase> prepared;
  try {
    prepared = operation.prepare(context, team, arguments);
  } catch (const Error& error) {
    if (error.code() != Errc::unsupported) throw;
    return {.verdict = Verdict::unsupported,
            .step = "preparation",
            .reason = error.what(),
            .code = error.code()};
  }
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
