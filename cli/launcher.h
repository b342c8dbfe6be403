// The life of a job: its ranks, their output, their end.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/descriptor.h"
#include "cli/guardian.h"
#include "cli/line_prefixer.h"
#include "cli/mps_daemon.h"
#include "cli/output_stream.h"
#include "cli/rank_environment.h"
#include "cli/rank_process.h"
#include "cli/run.h"
#include "cli/signal_source.h"

namespace iridium::cli {

/// Runs the ranks of one job. Destruction kills ranks that still run.
class Launcher {
 public:
  explicit Launcher(const RunOptions& options) : options_(options) {}
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  ~Launcher() { kill_and_reap_ranks(); }

  /// Starts the ranks, stays with them until all have ended, and returns the status to exit with.
  int run();
  /// Whether a signal has asked it to end them.
  bool was_interrupted() const { return interrupted_by_.has_value(); }

 private:
  using Clock = std::chrono::steady_clock;

  /// One output of one rank.
  struct Channel {
    Descriptor pipe;
    LinePrefixer prefixer;
    OutputStream& destination;
  };
  struct Rank {
    int number;
    pid_t process;
    bool has_ended;
    Channel channels[2];
  };

  /// Starts a private MPS daemon if the job needs one and there is none.
  void start_mps();
  /// How many GPUs the ranks will use. A backend that was asked for and cannot be used fails the
  /// job: otherwise every rank would say so.
  int gpus();
  void start_ranks();
  /// Returns the `errno` that kept the program from starting, else 0.
  int start_rank(int number, const JobIdentity& identity);

  /// Waits for the next events and acts on them.
  /// The rank that is taken for the cause, until `verdict_at`.
  struct Suspect {
    int rank;
    ProcessEnd end;
    Clock::time_point verdict_at;
  };

  void wait_for_events();
  int wait_milliseconds() const;
  void write_output(OutputStream& stream);
  void read_channel(Channel& channel);
  /// Reads what is in the pipe now, however fast somebody goes on writing.
  void drain_channel(Channel& channel);
  void close_channel(Channel& channel);

  void receive_signals();
  void forward_signal(int signal);
  void look_at_rank(Rank& rank);
  /// Says which rank failed, and ends the others.
  void give_verdict();
  void fail(int status, const std::string& message);
  void enforce_deadline();
  void set_deadline();
  void signal_ranks(int signal);
  /// Ends what the ranks left behind in their process groups, and collects the last output.
  void close_job();
  void kill_and_reap_ranks() noexcept;

  void report(const std::string& message);
  std::vector<int> running_ranks() const;
  bool is_finished() const;
  int status() const;

  RunOptions options_;
  const Guardian guardian_;  // of the ranks' process groups
  SignalSource signals_;
  OutputStream output_{1};
  OutputStream error_{2};
  std::optional<MpsDaemon> mps_;               // ends when the ranks have ended
  std::vector<Rank> ranks_;                    // empty again when all have ended
  std::optional<Suspect> suspect_;             // a rank has failed; the verdict is still to come
  std::optional<int> failed_status_;           // of the rank that failed first
  std::optional<int> interrupted_by_;          // the first terminating signal
  std::optional<Clock::time_point> deadline_;  // when patience ends
  bool abandons_output_ = false;               // nobody waits for the reader any more
  bool lost_output_ = false;
};

}  // namespace iridium::cli
