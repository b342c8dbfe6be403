// A copy of the ring of a tile product's stages, with one thing left out: what the tests must find.
#pragma once

#include "iridium/device/matmul.h"

namespace iridium::test {

enum class RingFlaw {
  none,              ///< the copy itself is right
  no_wait,           ///< a stage is multiplied while copies to it are in flight
  short_wait,        ///< the wait is for the stage before
  no_block_barrier,  ///< a thread waits for its own copies alone
  early_refill,      ///< a stage is filled while other threads may still multiply it
};

/// `detail::StageRing`, as short as can be.
template <RingFlaw flaw, int Stages, int Threads>
class FlawedRing {
 public:
  IR_DEVICE explicit FlawedRing(BlockOf<Threads> block) : block_(block) {}

  IR_DEVICE int pending() const { return fetched_ - awaited_; }
  IR_DEVICE bool has_room() const {
    return pending() < (flaw == RingFlaw::early_refill ? Stages : Stages - 1);
  }
  IR_DEVICE int next() const { return fetched_ % Stages; }
  IR_DEVICE void end_fetch() {
    target::end_fetch(block_.seat());
    ++fetched_;
  }
  IR_DEVICE void await() {
    const int open = pending() - (flaw == RingFlaw::short_wait ? 0 : 1);
    if (flaw != RingFlaw::no_wait) {
      if (open == 0)
        target::await_fetches<0>(block_.seat());
      else if (open == 1)
        target::await_fetches<1>(block_.seat());
      else
        target::await_fetches<2>(block_.seat());
    }
    if (flaw != RingFlaw::no_block_barrier) block_.sync();
    ++awaited_;
  }
  IR_DEVICE int current() const { return (awaited_ - 1) % Stages; }

 private:
  BlockOf<Threads> block_;
  int fetched_ = 0;
  int awaited_ = 0;
};

/// A flawed ring as the product's template argument.
template <RingFlaw flaw>
struct FlawedRings {
  template <int Stages, int Threads>
  using Ring = FlawedRing<flaw, Stages, Threads>;
};

/// D = A × B of 16 × 16 elements by one block: with `run`, or call by call, where copies begin
/// behind the product of the stage before.
template <RingFlaw flaw, bool by_calls>
struct FlawedProduct {
  static constexpr TileProductShape shape = {
      .rows = 16, .columns = 16, .depth = 16, .stages = 3, .threads = 32};
  using Product = TileProduct<float, MatmulLayout::nk, shape, FlawedRings<flaw>::template Ring>;

  Matrix<float> d;
  Matrix<const float> a;
  Matrix<const float> b;

  IR_DEVICE void operator()(BlockOf<32> block) const {
    Product product(block);
    if (by_calls)
      multiply(product);
    else
      product.run(a, b, 0, 0);
    product.for_each_pair([&](std::size_t row, std::size_t column, float first, float second) {
      store_pair(d, row, column, first, second);
    });
  }

 private:
  IR_DEVICE void multiply(Product& product) const {
    std::size_t k = 0;
    while (k < a.columns || product.pending() > 0) {
      for (; k < a.columns && product.has_room(); k += shape.depth) product.fetch(a, b, 0, 0, k);
      product.await();
      product.multiply();
    }
  }
};

}  // namespace iridium::test
