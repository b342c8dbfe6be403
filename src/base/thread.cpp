#include "base/thread.h"

#include <signal.h>

#include <string>
#include <system_error>

#include "iridium/errors.h"

namespace iridium {
namespace {

/// Blocks all signals of this thread, and of those it starts, while it lives.
class SignalBlock {
 public:
  SignalBlock() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalBlock() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

std::thread start_thread(std::function<void()> body) {
  const SignalBlock block;
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    throw Error(Errc::system, std::string("cannot start a thread: ") + error.what());
  }
}

}  // namespace iridium
