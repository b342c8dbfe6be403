#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "backend/host/block_scheduler.h"

namespace iridium {

/// What `StreamImpl::place` is on the host backend.
inline constexpr const char* host_place = "the CPUs";

/// A stream whose work runs on a thread of its own, started with the first work.
std::shared_ptr<detail::StreamImpl> make_host_stream(const Schedule& schedule = {});

/// Why CPUs cannot run the kernel; empty when they can.
std::string object_to_host_kernel(const detail::KernelEntry& entry);

/// The live stream whose `native_handle()` this is; throws `invalid_argument` otherwise.
std::shared_ptr<detail::StreamImpl> find_host_stream(void* native_handle);

}  // namespace iridium
