// What the tests of block memory and reductions run, told without kernel code; see tile_kernels.h.
#pragma once

#include <cstdint>

#include "iridium/context.h"
#include "iridium/device/number.h"

namespace iridium::test {

/// How many threads a GPU's blocks have.
inline constexpr int block_sizes[] = {1, 2, 33, 512, 1000};

/// The value of a thread in a round. Sums of them round, and are exact for integers.
template <Number T>
IR_DEVICE T thread_value(int block, int thread, int round) {
  const auto bits = static_cast<std::uint32_t>((block * 2000 + thread) * 10 + round) * 2654435761u;
  if constexpr (FloatNumber<T>)
    return convert<T>(static_cast<float>(bits >> 8) / 4096 - 1000);
  else
    return static_cast<T>(bits);
}
/// Neither associative nor commutative: what comes out tells the order.
IR_DEVICE inline std::uint32_t mix(std::uint32_t a, std::uint32_t b) {
  return a * 2654435761u + (b ^ (a >> 7));
}
/// Which threads say true in a round: none, all, one, or all but one.
IR_DEVICE inline bool says_true(int thread, int threads, int round) {
  const int chosen = (round * 7) % threads;
  switch (round % 4) {
    case 0:
      return false;
    case 1:
      return true;
    case 2:
      return thread == chosen;
    default:
      return thread != chosen;
  }
}

inline constexpr int reduction_rounds = 8;

/// What a thread has got in one round.
template <Number T>
struct Reductions {
  T sum;
  T min;
  T max;
  std::uint32_t mixed;
  std::uint32_t any_of;
  std::uint32_t all_of;
};

/// Arrays of [block][thread][round], for 1000 threads a block at most.
template <Number T>
struct ReductionCase {
  int threads;  ///< of a GPU's block: one of `block_sizes`
  int blocks;
  Reductions<T>* results;
  int* thread_count;  ///< becomes that of a block
};
/// Queues the case's kernel. Exists for float, bf16 and std::int64_t.
template <Number T>
void run_reductions(const Context& context, StreamRef& stream, const ReductionCase<T>& work);

/// Every block takes tiles of `fetch_elements` elements through block memory, which turns them
/// around: out[tile][i] = in[tile][fetch_elements - 1 - i]. The next tile is fetched meanwhile.
inline constexpr int fetch_elements = 4 * 512;
struct FetchCase {
  int tiles;
  int blocks;
  const std::uint32_t* in;
  std::uint32_t* out;
};
void run_fetches(const Context& context, StreamRef& stream, const FetchCase& work);

}  // namespace iridium::test
