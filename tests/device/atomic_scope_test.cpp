// Atomics below system scope between ranks: found where ranks are simulated.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "device/atomic_calls.h"
#include "support/sanitizers.h"
#include "support/simulation.h"

namespace iridium::test {
namespace {

struct OneAccess {
  AtomicCase<std::uint32_t> access;
  std::uint32_t* word;

  IR_DEVICE void operator()(BlockOf<32> block) const {
    if (block.is_leader()) test::access(block, access, word);
  }
};

constexpr AtomicCall updates[] = {AtomicCall::store,    AtomicCall::add,
                                  AtomicCall::subtract, AtomicCall::bit_and,
                                  AtomicCall::bit_or,   AtomicCall::bit_xor,
                                  AtomicCall::minimum,  AtomicCall::maximum,
                                  AtomicCall::exchange, AtomicCall::compare_exchange};

/// Rank 0 makes the access to a word of rank `owner`.
void run_access(AtomicCall call, Scope scope, int owner, bool split) {
  SimulationOptions options;
  options.split = split;
  Simulation simulation(options);
  const OneAccess kernel = {{.call = call, .scope = scope, .operand = 1},
                            simulation.data(owner) + 5};
  simulation.launch(0, 1, kernel);
  simulation.run();
}

TEST(AtomicScopes, SystemIsRightForOwnAndPeersMemory) {
  for (const bool split : {false, true})
    for (const int owner : {0, 1}) {
      run_access(AtomicCall::load, Scope::system, owner, split);
      for (const AtomicCall call : updates) run_access(call, Scope::system, owner, split);
    }
}

TEST(AtomicScopes, SmallerOnesAreRightForOwnMemory) {
  for (const Scope scope : {Scope::block, Scope::device}) {
    run_access(AtomicCall::load, scope, 0, false);
    for (const AtomicCall call : updates) run_access(call, scope, 0, false);
  }
}

TEST(AtomicScopes, SmallerOnesAreAnErrorForPeersMemory) {
  if (under_thread_sanitizer) GTEST_SKIP() << "the simulation does not watch scopes";
  for (const Scope scope : {Scope::block, Scope::device})
    for (const AtomicCall call : updates)
      EXPECT_THROW(run_access(call, scope, 1, false), std::logic_error)
          << "call " << static_cast<int>(call) << ", scope " << static_cast<int>(scope);
}

TEST(AtomicScopes, AWordThatAPeerWroteIsReadAtSystemScope) {
  if (under_thread_sanitizer) GTEST_SKIP() << "the simulation does not watch scopes";
  for (const Scope scope : {Scope::block, Scope::device, Scope::system}) {
    Simulation simulation({});
    std::uint32_t* const word = simulation.data(1) + 5;
    simulation.launch(0, 1, OneAccess{{.call = AtomicCall::add, .operand = 1}, word});
    simulation.run();
    simulation.launch(1, 1, OneAccess{{.call = AtomicCall::load, .scope = scope}, word});
    if (scope == Scope::system)
      EXPECT_NO_THROW(simulation.run());
    else
      EXPECT_THROW(simulation.run(), std::logic_error) << "scope " << static_cast<int>(scope);
  }
}

}  // namespace
}  // namespace iridium::test
