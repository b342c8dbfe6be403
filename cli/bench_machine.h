// Where figures are taken.
#pragma once

#include <string>

#include "cli/bench_results.h"

namespace iridium::cli {

/// The machine without its GPU.
BenchMachine this_machine();
/// Adds the GPU where `backend` is "cuda", after which the machine is then named.
void describe_device(BenchMachine& machine, const std::string& backend);

/// The commit this program was built from, or nothing.
std::string commit();

}  // namespace iridium::cli
