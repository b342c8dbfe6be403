// Kernels of planted offenders, told without kernel code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iridium/context.h"

namespace iridium::test {

/// Copies `from` to `to` unless `*done` is set, and sets it.
void run_copy_once(const Context& context, StreamRef& stream, std::uint32_t* to,
                   const std::uint32_t* from, std::size_t count, std::uint32_t* done);

}  // namespace iridium::test
