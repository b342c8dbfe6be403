// The ranks of `iridium bench`: started, watched, and started again after a crash.
#pragma once

#include <cstddef>
#include <vector>

#include "cli/bench.h"
#include "cli/bench_results.h"
#include "cli/progress.h"
#include "cli/signal_source.h"

namespace iridium::cli {

/// How a job ended.
struct BenchJobEnd {
  int status = 0;                ///< of the ranks that ended badly, else 0
  bool was_interrupted = false;  ///< somebody has asked the command to stop
};

/// Measures all heats on so many ranks, beside the peers, and adds the figures to `run`. A heat in
/// which the ranks die has failed; the others go on. `done`: how many figures `progress` knows of.
BenchJobEnd run_bench_job(const BenchCommand& command, const std::vector<BenchHeat>& heats,
                          int ranks, const SignalSource& signals, ProgressBar& progress,
                          std::size_t& done, BenchRun& run);

}  // namespace iridium::cli
