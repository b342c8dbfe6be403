// Contexts and the capture mode around CUDA calls, on machines that are not there.
#include "backend/cuda/cuda_scope.h"

#include <gtest/gtest.h>

#include "backend/cuda/fake_driver.h"

namespace iridium::test {
namespace {

TEST(CudaScopes, MakeThePrimaryContextCurrentWhileTheyLive) {
  FakeMachine machine(FakeMachine::gpus(2));
  {
    const CudaScope scope(1);
    EXPECT_EQ(machine.current(), primary_context(1));
  }
  EXPECT_EQ(machine.current(), nullptr);
  EXPECT_EQ(machine.contexts(), (std::vector<int>{0, 1}));
  EXPECT_EQ(machine.calls_without_context(), 0);
}

TEST(CudaScopes, TouchNothingWhereTheContextCannotBeHad) {
  for (const char* call : {"cuDevicePrimaryCtxRetain", "cuCtxPushCurrent"}) {
    SCOPED_TRACE(call);
    FakeMachine machine(FakeMachine::gpus(2));
    machine.fail(call, CUDA_ERROR_OUT_OF_MEMORY);
    {
      const CudaScope scope(1);
    }
    EXPECT_EQ(machine.calls_without_context(), 0);
    EXPECT_EQ(machine.contexts()[0], 0) << "GPU 0 is not this scope's";
    EXPECT_EQ(machine.current(), nullptr);
  }
}

TEST(CudaScopes, LeaveAContextAloneThatCannotBeReplaced) {
  FakeMachine machine(FakeMachine::gpus(2));
  auto* const users = machine.make_current(0);
  machine.fail("cuCtxPushCurrent", CUDA_ERROR_OUT_OF_MEMORY);
  {
    const CudaScope scope(1);
  }
  EXPECT_EQ(machine.current(), users);
}

}  // namespace
}  // namespace iridium::test
