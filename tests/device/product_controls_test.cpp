// Deletes something from a tile product's ring of stages, one thing at a time, and expects copies
// that land late to show it.
#include <gtest/gtest.h>

#include <cstdint>

#include "device/flawed_product.h"
#include "support/sanitizers.h"
#include "support/simulation.h"

namespace iridium::test {
namespace {

/// How many seeds out of 50 give a wrong product, with K of 8 stages.
template <RingFlaw flaw, bool by_calls = false>
int count_wrong_products(bool split = true) {
  constexpr int extent = 16;
  constexpr int depth = 8 * 16;
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SimulationOptions options;
    options.seed = seed;
    options.split = split;
    Simulation simulation(options);
    auto* const d = reinterpret_cast<float*>(simulation.data(0));
    float* const a = d + extent * extent;
    float* const b = a + extent * depth;
    // Whole numbers: their sums are exact.
    for (int i = 0; i < extent * depth; ++i) {
      a[i] = static_cast<float>(i % 7 - 3);
      b[i] = static_cast<float>(i % 11 - 5);
    }
    simulation.launch(
        0, 1,
        FlawedProduct<flaw, by_calls>{
            {d, extent, extent, extent}, {a, extent, depth, depth}, {b, extent, depth, depth}});
    simulation.run();
    bool right = true;
    for (int row = 0; row < extent; ++row)
      for (int column = 0; column < extent; ++column) {
        float sum = 0;
        for (int k = 0; k < depth; ++k) sum += a[row * depth + k] * b[column * depth + k];
        right = right && d[row * extent + column] == sum;
      }
    wrong += right ? 0 : 1;
  }
  return wrong;
}

/// Under ThreadSanitizer a missing barrier ends the process.
class ProductControl : public testing::Test {
 protected:
  void SetUp() override {
    if (under_thread_sanitizer) GTEST_SKIP() << "the scheduler's matter";
  }
};

TEST_F(ProductControl, TheRingWithoutFlawIsRight) {
  EXPECT_EQ(count_wrong_products<RingFlaw::none>(), 0);
  EXPECT_EQ((count_wrong_products<RingFlaw::none, true>()), 0);
}

TEST_F(ProductControl, AWaitLeftOutIsFound) {
  EXPECT_GT(count_wrong_products<RingFlaw::no_wait>(), 45);
  EXPECT_GT((count_wrong_products<RingFlaw::no_wait, true>()), 45);
}

TEST_F(ProductControl, AWaitForTheStageBeforeIsFound) {
  EXPECT_GT(count_wrong_products<RingFlaw::short_wait>(), 45);
  EXPECT_GT((count_wrong_products<RingFlaw::short_wait, true>()), 45);
}

TEST_F(ProductControl, AMissingBlockBarrierIsFoundInSplitMode) {
  EXPECT_GT(count_wrong_products<RingFlaw::no_block_barrier>(), 45);
  EXPECT_EQ(count_wrong_products<RingFlaw::no_block_barrier>(false), 0)
      << "one fiber per block cannot show it";
}

TEST_F(ProductControl, AStageThatIsFilledTooEarlyIsFound) {
  EXPECT_GT((count_wrong_products<RingFlaw::early_refill, true>()), 45);
}

}  // namespace
}  // namespace iridium::test
