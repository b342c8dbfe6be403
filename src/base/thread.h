// Threads of the library's own.
#pragma once

#include <functional>
#include <thread>

namespace iridium {

/// A thread that takes no signals: those of the program are for its own threads. Throws `system`.
std::thread start_thread(std::function<void()> body);

}  // namespace iridium
