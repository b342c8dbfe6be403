// NVIDIA's MPS daemon, through which processes share a GPU.
#pragma once

#include <sys/types.h>

#include <string>

namespace iridium {

/// What stands against making CUDA calls beside the daemon in `directory`; empty when nothing does.
/// A daemon of another user lets this process wait, possibly for ever, and says nothing; root's
/// serves everybody.
std::string object_to_mps_daemon(const std::string& directory, uid_t user);

/// The directory CUDA looks for a daemon in.
std::string mps_directory();

}  // namespace iridium
