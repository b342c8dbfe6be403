// Where figures are taken.
#pragma once

#include <cstddef>
#include <string>

#include "cli/bench_results.h"

namespace iridium::cli {

/// The machine without its GPU.
BenchMachine this_machine();
/// Adds the GPU where `backend` is "cuda", after which the machine is then named.
void describe_device(BenchMachine& machine, const std::string& backend);

/// What a rank may use of the memory of this machine or, with ranks on GPUs, of its GPU: half of
/// its share, since peers and checks need some too. `backend` is empty or "auto" for the best one.
std::size_t memory_for_rank(const std::string& backend, int ranks);

/// The commit this program was built from, or nothing.
std::string commit();

}  // namespace iridium::cli
