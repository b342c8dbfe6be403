// Which GPU a rank takes, and what ranks tell each other of it.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/gpu.h"

namespace iridium {

/// A rank's GPU, and why it is that one.
struct GpuChoice {
  Gpu gpu;
  std::string reason;        ///< "… because {reason}"
  bool is_explicit = false;  ///< the user named it
};

/// The GPU asked for; else that of the calling thread's current CUDA context; else by the local
/// rank, else by the rank, modulo the number of GPUs that Iridium runs on. Throws
/// `invalid_argument` for one that does not exist.
GpuChoice choose_gpu(const BackendRequest& request, const std::vector<Gpu>& visible);

/// What other ranks must know of a rank's place.
struct GpuPlace {
  std::string process;  ///< another one for every process, also in other pid namespaces
  int device = 0;
  std::string uuid;
  std::string reason;
  bool is_explicit = false;
  std::vector<std::string> usable;  ///< uuids of the GPUs that it could take
};

std::string encode(const GpuPlace& place);
GpuPlace parse_gpu_place(const std::string& text);

/// Throws when ranks are threads of one process, or share a GPU that not all of them have named
/// while others are idle.
void check_places(const std::vector<GpuPlace>& places);

}  // namespace iridium
