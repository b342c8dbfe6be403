// Programs of other libraries that take part in the heats of `iridium bench` (docs/benchmarks.md).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "cli/bench.h"
#include "cli/bench_results.h"
#include "cli/guardian.h"
#include "cli/signal_source.h"

namespace iridium::cli {

/// How long a turn may take.
inline constexpr std::chrono::seconds turn_patience{60};

/// A peer, running. Destruction ends it.
class BenchPeer {
 public:
  /// Starts `command` for these heats and waits until it can take turns, or has failed.
  BenchPeer(const std::string& command, const BenchCommand& bench,
            const std::vector<BenchHeat>& heats, int ranks, const SignalSource& signals);
  BenchPeer(const BenchPeer&) = delete;
  BenchPeer& operator=(const BenchPeer&) = delete;
  ~BenchPeer();

  /// Where it takes turns.
  const std::string& folder() const { return folder_; }
  struct Findings {
    std::string contender;  ///< as its figures name it
    Versions versions = {};
    std::vector<BenchFigure> figures = {};
  };
  /// Ends it, and returns what it found, with the reason for what is missing.
  Findings end();

 private:
  void start(const std::string& command, const std::vector<std::string>& arguments);
  bool wait_until_ready() const;
  void stop() noexcept;
  std::string last_words() const;
  Versions versions() const;

  const SignalSource& signals_;  ///< one that ends the command ends waits, too
  std::string name_;             ///< of the program, for messages
  const std::vector<BenchHeat>& heats_;
  int ranks_;
  std::string folder_;
  const Guardian guardian_;  ///< of the folder and the process's group
  pid_t process_ = -1;
  bool is_ready_ = false;
  std::atomic<bool> is_gone_ = false;
  std::thread reaper_;  ///< waits for the process
};

/// On rank 0: lets the peer have its turn, and waits for it. False when it has not ended in time or
/// is gone; it gets no turns any more then.
bool give_turn(const std::string& folder, std::size_t heat, int round,
               std::chrono::milliseconds patience = turn_patience);

}  // namespace iridium::cli
