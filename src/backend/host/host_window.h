#pragma once

#include <cstdint>
#include <memory>

#include "backend/backend.h"

namespace iridium {

/// See `Backend::open_window`.
std::shared_ptr<Window> open_host_window(std::uint64_t context_id, int ranks, std::size_t stride);

}  // namespace iridium
