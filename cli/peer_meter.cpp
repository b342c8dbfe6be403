#include "cli/peer_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "iridium/device_barrier.h"
#include "iridium/errors.h"

namespace iridium::cli {
namespace {

using Word = std::uint64_t;
using Microseconds = std::chrono::duration<double, std::micro>;

/// From one size of transfers to the next.
constexpr std::size_t growth = 16;

/// Text of a fixed size, for ranks to send.
struct Text {
  char characters[400] = {};

  /// The first one stays.
  void set(std::string_view text) {
    if (is_empty())
      std::memcpy(characters, text.data(), std::min(text.size(), sizeof characters - 1));
  }
  bool is_empty() const { return characters[0] == '\0'; }
  std::string string() const { return characters; }
};

/// Word `index` of the memory of `rank`: no two ranks, no two words alike, and none is zero.
Word pattern_word(int rank, std::size_t index) {
  return (static_cast<Word>(rank) + 1) * 0x9e3779b97f4a7c15u + index * 0x100000001u;
}

/// What `body` returns on either member, in the team's order; what it throws on one of them, both
/// throw, so that neither waits for the other.
template <class T, class Body>
std::array<T, 2> together(Team& team, const Body& body) {
  struct Part {
    T value = {};
    Text error = {};
  };
  Part mine;
  try {
    mine.value = body();
  } catch (const std::exception& error) {
    mine.error.set(error.what());
  }
  // Who waited in a kernel in vain comes a timeout later.
  const std::vector<Part> parts = team.all_gather(mine, 2);
  for (std::size_t place = 0; place < parts.size(); ++place)
    if (!parts[place].error.is_empty())
      throw std::runtime_error(
          fmt::format("rank {}: {}", team.ranks()[place], parts[place].error.string()));
  return {parts[0].value, parts[1].value};
}

}  // namespace

double least_gbps(Link link) {
  switch (link) {
    case Link::nvlink:
      return 20;
    case Link::pcie_atomics:
    case Link::pcie:
      return 4;
    default:
      return 0;
  }
}

/// What the members of a pair find when the first of them acts, as ranks tell each other.
struct PeerMeter::Direction {
  Link link = Link::none;
  double barrier_us = 0;
  double store_gbps = 0;
  double load_gbps = 0;
  Text wrong = {};
  Text error = {};
};

/// How words get from one member to the other.
struct PeerMeter::Way {
  const PeerTransfer& transfer;
  std::size_t actor;     ///< the place whose kernel moves them
  std::size_t receiver;  ///< the place that has them then
  const char* verb;
};

PeerMeter::PeerMeter(Context& context, const PeerMeterOptions& options)
    : context_(context),
      options_(options),
      stream_(context.make_stream()),
      own_(context.allocate<Word>(options.bytes / sizeof(Word))),
      received_(context.allocate<Word>(options.bytes / sizeof(Word))) {
  prepare_peer_kernels(context);
  std::vector<Word> pattern(own_.size());
  for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = pattern_word(context.rank(), i);
  stream_.copy(own_.data(), pattern.data(), own_.bytes());
  stream_.synchronize();
}

std::array<PeerFigures, 2> PeerMeter::measure(int one, int other) {
  const std::array<int, 2> ranks = {one, other};
  std::array<Direction, 2> mine = {};
  for (std::size_t place = 0; place < 2; ++place)
    if (context_.rank() == ranks[place]) mine[place].link = context_.link(ranks[1 - place]);
  try {
    // Barriers need none of a lane's areas, which take time to clear.
    Team team = context_.make_team(ranks, {.scratch_bytes = 4096,
                                           .packet_bytes = 4096,
                                           .name = fmt::format("ranks {} and {}", one, other)});
    if (team.is_member()) measure_in(team, mine);
  } catch (const std::exception& error) {
    for (Direction& direction : mine) direction.error.set(error.what());
  }
  const auto all = context_.world().all_gather(mine, 2);
  std::array<PeerFigures, 2> figures;
  for (std::size_t place = 0; place < 2; ++place) {
    Direction found = all[static_cast<std::size_t>(ranks[place])][place];
    for (const auto& each : all) found.error.set(each[place].error.string());
    figures[place] = {ranks[place],         ranks[1 - place],    found.link,
                      found.barrier_us,     found.store_gbps,    found.load_gbps,
                      found.wrong.string(), found.error.string()};
  }
  return figures;
}

void PeerMeter::measure_in(Team& team, std::array<Direction, 2>& found) {
  for (std::size_t actor = 0; actor < 2; ++actor) {
    Direction& direction = found[actor];
    try {
      direction.store_gbps =
          measure_rate(team, {options_.store, actor, 1 - actor, "stored to"}, direction);
      direction.load_gbps =
          measure_rate(team, {options_.load, actor, actor, "loaded from"}, direction);
    } catch (const std::exception& error) {
      direction.error.set(error.what());
    }
  }
  const double barrier_us = measure_barrier(team);
  for (Direction& direction : found) direction.barrier_us = barrier_us;
}

/// GB/s.
double PeerMeter::measure_rate(Team& team, const Way& way, Direction& found) {
  const double share_us = Microseconds(options_.share).count();
  std::size_t bytes = std::min(options_.first_bytes, options_.bytes);
  double time = 0;
  for (;;) {
    // Twice, since the first transfer of a size may be slow for reasons that pass.
    time = move(team, way, bytes, 1);
    time = std::min(time, move(team, way, bytes, 1));
    const std::size_t next = std::min(bytes * growth, options_.bytes);
    const double next_time = time * static_cast<double>(next) / static_cast<double>(bytes);
    if (bytes == next || next_time > share_us) break;
    bytes = next;
  }
  found.wrong.set(find_difference(team, way, bytes));
  if (bytes == options_.bytes && time <= share_us)
    for (int round = 0; round < options_.rounds; ++round)
      time = std::min(time, move(team, way, bytes, options_.repeats));
  return static_cast<double>(bytes) / time / 1000;
}

/// Clears both members' `received_` and has the actor move that many bytes; microseconds for each
/// time it does.
double PeerMeter::move(Team& team, const Way& way, std::size_t bytes, int repeats) {
  together<int>(team, [&] {
    stream_.fill(received_.data(), 0, bytes);
    stream_.synchronize();
    return 0;
  });
  const auto place = static_cast<std::size_t>(team.rank());
  const PeerWords words = {received_.data(), own_.data(), bytes / sizeof(Word),
                           static_cast<int>(1 - way.actor)};
  const std::array<double, 2> times = together<double>(team, [&] {
    if (place != way.actor) return 0.0;
    return microseconds_of([&] {
      for (int i = 0; i < repeats; ++i) way.transfer(context_, stream_, team, words);
      stream_.synchronize();
      team.check();
    });
  });
  return times[way.actor] / repeats;
}

/// The first word of those that were moved last that is not the sender's; empty when all are.
std::string PeerMeter::find_difference(Team& team, const Way& way, std::size_t bytes) {
  struct Difference {
    bool is_there = false;
    std::size_t index = 0;
    Word found = 0;
  };
  const int sender = team.ranks()[1 - way.receiver];
  const std::size_t count = bytes / sizeof(Word);
  const auto place = static_cast<std::size_t>(team.rank());
  const Difference first = together<Difference>(team, [&]() -> Difference {
    if (place != way.receiver) return {};
    std::vector<Word> received(count);
    stream_.copy(received.data(), received_.data(), bytes);
    stream_.synchronize();
    for (std::size_t i = 0; i < count; ++i)
      if (received[i] != pattern_word(sender, i)) return {true, i, received[i]};
    return {};
  })[way.receiver];
  if (!first.is_there) return {};
  return fmt::format("word {} of {} that rank {} {} rank {} is {:#x}, not {:#x}", first.index,
                     count, team.ranks()[way.actor], way.verb, team.ranks()[1 - way.actor],
                     first.found, pattern_word(sender, first.index));
}

/// Microseconds.
double PeerMeter::measure_barrier(Team& team) {
  std::optional<Graph> graph;
  together<int>(team, [&] {
    stream_.begin_capture();
    try {
      for (int i = 0; i < options_.barriers; ++i) device_barrier(stream_, team);
    } catch (...) {
      // Later pairs need the stream.
      stream_.end_capture();
      throw;
    }
    graph = stream_.end_capture();
    return 0;
  });
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < options_.rounds; ++round) {
    const double time = together<double>(team, [&] {
      return microseconds_of([&] {
        stream_.launch(*graph);
        stream_.synchronize();
        team.check();
      });
    })[0];
    best = std::min(best, time / options_.barriers);
    if (time > Microseconds(options_.share).count()) break;
  }
  return best;
}

double PeerMeter::microseconds_of(const std::function<void()>& body) const {
  const auto start = options_.now();
  body();
  return Microseconds(options_.now() - start).count();
}

}  // namespace iridium::cli
