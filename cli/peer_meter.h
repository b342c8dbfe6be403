// Measures what lies between two ranks as kernels meet it: the rates of stores and loads, whether
// words arrive as they were sent, and how long a barrier takes.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "cli/peer_kernels.h"
#include "iridium/context.h"
#include "iridium/types.h"

namespace iridium::cli {

/// How one rank reaches the memory of another.
struct PeerFigures {
  int from = 0;
  int to = 0;
  Link link = Link::none;
  double barrier_us = 0;  ///< of the two alone
  double store_gbps = 0;
  double load_gbps = 0;
  std::string wrong = {};  ///< what did not arrive as it was sent; empty: all did
  std::string error = {};  ///< why figures are missing; empty: none is

  bool is_well() const { return wrong.empty() && error.empty(); }
};

/// The GB/s below which stores or loads over the link are called slow: less than a sound one of the
/// oldest kind reaches. 0 where no link lies between the ranks.
double least_gbps(Link link);

/// Moves words over a link, as `store_to_peer` and `load_from_peer` do.
using PeerTransfer = std::function<void(const Context&, StreamRef&, const Team&, const PeerWords&)>;

/// How much is moved, by what, and by which clock. The same on every rank, but for what tests put
/// in the place of the functions.
struct PeerMeterOptions {
  std::size_t bytes = 32u << 20;        ///< of a full transfer
  std::size_t first_bytes = 16u << 10;  ///< of the first one, from which sizes grow
  /// A transfer that is expected to take longer is not made: a pair that does not get to full ones
  /// is measured once, at the size it got to.
  std::chrono::milliseconds share{20};
  int rounds = 5;     ///< of which the best one counts
  int repeats = 4;    ///< full transfers that are timed together
  int barriers = 50;  ///< that are timed together
  PeerTransfer store = store_to_peer;
  PeerTransfer load = load_from_peer;
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

/// Measures pair after pair. Construction and `measure` are collective over the world.
class PeerMeter {
 public:
  explicit PeerMeter(Context& context, const PeerMeterOptions& options = {});

  /// What lies between two ranks, in both directions, as every rank hears of it. What fails between
  /// the two is in the figures, and keeps no other pair from being measured.
  std::array<PeerFigures, 2> measure(int one, int other);

 private:
  struct Direction;
  struct Way;

  void measure_in(Team& team, std::array<Direction, 2>& found);
  double measure_rate(Team& team, const Way& way, Direction& found);
  double move(Team& team, const Way& way, std::size_t bytes, int repeats);
  std::string find_difference(Team& team, const Way& way, std::size_t bytes);
  double measure_barrier(Team& team);
  double microseconds_of(const std::function<void()>& body) const;

  Context& context_;
  PeerMeterOptions options_;
  Stream stream_;
  SymmetricArray<std::uint64_t> own_;
  SymmetricArray<std::uint64_t> received_;
};

}  // namespace iridium::cli
