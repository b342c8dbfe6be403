// Who am I: how a rank finds its job, and how to run ranks as threads.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace iridium {

class Context;
struct ContextOptions;

/// A rank's place in its job. Plain data; any thread may read it.
struct Job {
  int rank = 0;  ///< 0 … size − 1
  int size = 1;  ///< number of ranks
  /// "iridium", "torchrun", "openmpi", "slurm", "torch", "pmi", "threads" or "single".
  std::string launcher;
  std::string rendezvous;  ///< the name ranks meet under: unique to the job among this user's jobs
                           ///< on this host
  std::string token;       ///< a peer that does not know it is turned away
  /// The rank's number among those on its host, if the launcher says: it takes a GPU by it.
  std::optional<int> local_rank = {};
  std::string local_rank_variable = {};  ///< where the launcher says so, for messages

  /// The job this process was started in: `iridium run`, torchrun, Open MPI, Slurm, the variables
  /// of torch.distributed or PMI, looked for in this order, else a world of one. Throws
  /// `invalid_argument` when a launcher's variables are incomplete or not numbers, and
  /// `unsupported` when the job spans several hosts. docs/bootstrap.md lists names and tokens per
  /// launcher.
  static Job from_environment();
};

/// Jobs for `size` ranks that meet on this host under a fresh name and token; entry r is rank r's.
std::vector<Job> make_local_jobs(int size);

/// The most ranks a job can have.
inline constexpr int max_ranks = 64;

/// Runs `body` on `size` in-process ranks, a thread each, and returns when all have ended.
/// When ranks throw, the exception thrown first in time is thrown again here: later ones are its
/// consequences.
void spawn(int size, const std::function<void(Context&)>& body);
/// The same with options for every context.
void spawn(int size, const ContextOptions& options, const std::function<void(Context&)>& body);

}  // namespace iridium
