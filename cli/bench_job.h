// The ranks of `iridium bench`: started, watched, and started again after a crash.
#pragma once

#include <span>
#include <vector>

#include "cli/bench.h"
#include "cli/bench_results.h"

namespace iridium::cli {

/// How a job ended.
struct BenchJobEnd {
  int status = 0;                ///< of the ranks that ended badly, else 0
  bool was_interrupted = false;  ///< somebody has asked the command to stop
  bool never_began = false;      ///< no rank of the first job got as far as a context
};

/// What one command measures.
struct BenchTask {
  BenchCommand command;
  std::vector<BenchHeat> heats;
  std::vector<int> ranks;  ///< a job for each number
};

/// Measures every task's heats on each of its numbers of ranks, beside the peers, and adds the
/// figures to `run`, which is complete when nothing was cut short. A heat in which the ranks die
/// has failed; the others go on. Shows progress; a signal ends it.
BenchJobEnd run_bench_jobs(std::span<const BenchTask> tasks, BenchRun& run);

}  // namespace iridium::cli
