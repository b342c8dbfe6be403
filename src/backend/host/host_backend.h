// The CPU: segments are memfd memory, streams are threads.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/host/block_scheduler.h"

namespace iridium {

BackendInfo describe_host_backend();
std::unique_ptr<Backend> make_host_backend(const Schedule& schedule = {}, Link link = Link::shared);

/// The memory segments can come from: the machine's, or what the control group allows if that is
/// less.
std::size_t host_memory_bytes();

}  // namespace iridium
