// Where figures are taken.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "cli/bench_results.h"
#include "iridium/info.h"

namespace iridium::cli {

/// The machine without its GPU.
BenchMachine this_machine();
/// Adds the GPU where `backend` is "cuda", after which the machine is then named.
void describe_device(BenchMachine& machine, const std::string& backend);

/// The backend that ranks use: of this name, or the best one present where it is empty or "auto".
/// Nothing where there is none.
std::optional<BackendInfo> backend_for(const std::string& backend);

/// "h200 (Xeon 8480, 16 cores, NVIDIA H200)".
std::string machine_text(const BenchMachine& machine);

/// What a rank may use of the memory of this machine or, with ranks on GPUs, of its GPU: half of
/// its share, since peers and checks need some too. `backend` is as in `backend_for`.
std::size_t memory_for_rank(const std::string& backend, int ranks);

/// The checkout's commit when this was built, or empty; cmake/write_commit.cmake defines it.
extern const char* const built_commit;

/// A run of this program on this machine, still without figures.
BenchRun begin_run(const std::string& command);

}  // namespace iridium::cli
