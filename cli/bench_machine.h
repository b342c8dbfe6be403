// Where figures are taken.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "cli/bench_results.h"
#include "iridium/info.h"
#include "iridium/types.h"

namespace iridium::cli {

/// The machine without its GPU.
BenchMachine this_machine();

/// How ranks used the GPUs.
struct GpuUse {
  int gpus = 0;              ///< the most; 0: none
  Link link = Link::shared;  ///< the worst one between two ranks
};
/// What `ranks` ranks use of `usable` GPUs when `link` is the worst one between two of them.
GpuUse use_of_gpus(int ranks, int usable, Link link);
/// A word for folders: "h200x8-nvlink".
std::string machine_name(const std::string& device, const GpuUse& use);
/// Adds the GPU, after which the machine is then named, where `backend` is "cuda". `use` is what
/// the jobs before have used; this one's `ranks` and worst link are added to it.
void describe_device(BenchMachine& machine, const std::string& backend, int ranks, Link link,
                     GpuUse& use);

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
