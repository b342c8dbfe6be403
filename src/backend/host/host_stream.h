#pragma once

#include <memory>

#include "backend/backend.h"

namespace iridium {

/// A stream whose work runs on a thread of its own, started with the first work.
std::shared_ptr<detail::StreamImpl> make_host_stream();

/// The live stream whose `native_handle()` this is; throws `invalid_argument` otherwise.
std::shared_ptr<detail::StreamImpl> find_host_stream(void* native_handle);

}  // namespace iridium
