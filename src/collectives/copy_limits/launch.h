#pragma once

#include <cstddef>
#include <cstdint>

#include "iridium/context.h"

namespace iridium {

/// Copies `count` numbers by a kernel with so many blocks.
void launch_plain_copy(const Context& context, StreamRef& stream, std::uint32_t* to,
                       const std::uint32_t* from, std::size_t count, int blocks);

}  // namespace iridium
