// NVIDIA's Multi-Process Service (MPS), without which processes that share a GPU take turns.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/descriptor.h"
#include "cli/signal_source.h"
#include "iridium/info.h"

namespace iridium::cli {

/// How many of NVIDIA's GPUs the ranks of a job spread over when they are asked to use `backend`:
/// "auto" or nothing for the best one of `backends`. None when they use another backend.
int gpus_of_job(std::string_view backend, std::span<const BackendInfo> backends);

/// Whether `ranks` on `gpus` need MPS. `mode` is "on", "off", or "auto": when they share a GPU.
bool needs_mps(std::string_view mode, int ranks, int gpus);

/// A daemon that somebody else started.
struct InheritedDaemon {
  std::string directory;  ///< of its control socket
  uid_t owner = 0;

  /// Whether this user may use it: its own, or root's, which serves everybody.
  bool serves_us() const;
  /// The owner's name, or number if there is none.
  std::string owner_name() const;
};

/// Where CUDA looks for a daemon: CUDA_MPS_PIPE_DIRECTORY, or its default.
std::string mps_pipe_directory();

/// The daemon that listens in `directory`, if one does. What a dead one left there is none.
std::optional<InheritedDaemon> find_inherited_daemon(const std::string& directory);

/// How long a private daemon is waited for.
struct MpsPatience {
  std::chrono::milliseconds start{10'000};
  std::chrono::milliseconds quit{5'000};
};

/// A daemon for one job, in a directory that only this user can enter. It outlives a launcher that
/// is killed with SIGKILL, because it leaves the launcher's processes as every daemon does.
class MpsDaemon {
 public:
  /// Starts the daemon and returns when it listens. Throws `Errc::system` with the reason when it
  /// does not, also when `signals` has one that asks the launcher to end.
  explicit MpsDaemon(const SignalSource& signals, const MpsPatience& patience = {});
  MpsDaemon(const MpsDaemon&) = delete;
  MpsDaemon& operator=(const MpsDaemon&) = delete;
  /// Asks the daemon to quit, kills it if it does not, and removes the directory. For when its
  /// clients have ended: it waits for them.
  ~MpsDaemon();

  const std::string& directory() const { return directory_; }
  /// The variables by which its clients find it.
  std::vector<std::pair<std::string, std::string>> environment() const;

 private:
  MpsDaemon(const SignalSource& signals, const MpsPatience& patience, std::string directory);

  pid_t start_control(const std::vector<std::string>& arguments, int input, int output) const;
  void wait_until_it_listens();
  void throw_if_starter_failed() const;
  /// Whether the daemon has gone because it was asked to.
  bool quits() const;
  bool has_gone() const;
  void kill_it() noexcept;

  const SignalSource& signals_;
  MpsPatience patience_;
  std::string directory_;
  pid_t starter_ = -1;  // started the daemon; reaped at the end, so that its group stays known
  Descriptor process_;  // the daemon, once its number is known
  bool listens_ = false;
};

}  // namespace iridium::cli
