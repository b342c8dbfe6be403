#include <string>

#include "collectives/signals/kernels.h"
#include "iridium/remote_memory.h"
#include "iridium/signals.h"
#include "runtime/team_launch.h"

namespace iridium {
namespace {

/// Above this, the copy is left to the backend, which is quicker than one block.
constexpr std::size_t max_block_copy_bytes = 256u << 10;

void require_flags(const char* operation, const Team& team, const std::uint32_t* flags, int count) {
  if (reinterpret_cast<std::uintptr_t>(flags) % alignof(std::uint32_t) != 0)
    throw Error(Errc::invalid_argument,
                std::string(operation) + ": flags lie at multiples of 4 bytes; these do not");
  detail::Access::team(team)->require_symmetric(operation, flags,
                                                static_cast<std::size_t>(count) * sizeof *flags);
}

void require_op(const char* operation, const Team& team, SignalOp op) {
  if (op == SignalOp::add)
    detail::Access::team(team)->require_native_atomics(std::string(operation) + " with add");
}

void require_place(const char* operation, const Team& team, int place) {
  detail::Access::team(team)->require_place(operation, place);
}

}  // namespace

void signal(StreamRef& stream, const Team& team, std::uint32_t* flag, int place,
            std::uint32_t value, SignalOp op) {
  require_place("signal", team, place);
  require_flags("signal", team, flag, 1);
  require_op("signal", team, op);
  launch_on_team(stream, team, "signal", {},
                 [&](const Lane& lane) { return Signal{lane.peers(), flag, place, value, op}; });
}

void wait(StreamRef& stream, const Team& team, std::uint32_t* flag, std::uint32_t value,
          const WaitOptions& options) {
  if (options.from != -1) require_place("wait", team, options.from);
  require_flags("wait", team, flag, 1);
  launch_on_team(stream, team, "wait", {.blocks = 1, .resident = true}, [&](const Lane& lane) {
    return Wait{lane, flag, value, options.compare, options.consume, options.from};
  });
}

void signal_all(StreamRef& stream, const Team& team, std::uint32_t* flags, std::uint32_t value,
                SignalOp op) {
  require_flags("signal_all", team, flags, team.size());
  require_op("signal_all", team, op);
  launch_on_team(stream, team, "signal_all", {},
                 [&](const Lane& lane) { return SignalAll{lane.peers(), flags, value, op}; });
}

void wait_all(StreamRef& stream, const Team& team, std::uint32_t* flags, std::uint32_t value,
              const WaitOptions& options) {
  require_flags("wait_all", team, flags, team.size());
  launch_on_team(stream, team, "wait_all", {.blocks = 1, .resident = true}, [&](const Lane& lane) {
    return WaitAll{lane, flags, value, options.compare, options.consume};
  });
}

void put_signal(StreamRef& stream, const Team& team, void* to, const void* from, std::size_t bytes,
                int place, std::uint32_t* flag, std::uint32_t value, SignalOp op) {
  require_place("put_signal", team, place);
  require_flags("put_signal", team, flag, 1);
  require_op("put_signal", team, op);
  detail::Access::team(team)->require_symmetric("put_signal", to, bytes);
  if (from == nullptr && bytes > 0)
    throw Error(Errc::invalid_argument,
                "put_signal: a null pointer with " + std::to_string(bytes) + " bytes");
  if (bytes > max_block_copy_bytes) {
    put(stream, team, to, from, bytes, place);
    signal(stream, team, flag, place, value, op);
    return;
  }
  detail::Access::team(team)->require_reachable("put_signal", from, bytes);
  launch_on_team(stream, team, "put_signal", {}, [&](const Lane& lane) {
    return PutSignal{lane.peers(),
                     static_cast<std::uint8_t*>(to),
                     static_cast<const std::uint8_t*>(from),
                     bytes,
                     place,
                     flag,
                     value,
                     op};
  });
}

KernelList signal_kernels() {
  using Compiler = detail::ThisCompiler;
  return {&detail::kernel_entry<Signal, Compiler>(), &detail::kernel_entry<SignalAll, Compiler>(),
          &detail::kernel_entry<Wait, Compiler>(), &detail::kernel_entry<WaitAll, Compiler>(),
          &detail::kernel_entry<PutSignal, Compiler>()};
}

}  // namespace iridium
