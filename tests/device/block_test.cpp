// Block memory and reductions against plain loops. On a GPU when IRIDIUM_BACKEND says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "device/block_kernels.h"
#include "device/block_modes.h"

namespace iridium::test {
namespace {

/// The order of `reduce`: every 32nd value, on a CPU every second one, and then these.
template <class T, class Op>
T reduced(BackendKind backend, const std::vector<T>& values, Op op) {
  const std::size_t most = backend == BackendKind::host ? 2 : 32;
  const std::size_t partials = std::min(values.size(), most);
  std::vector<T> totals(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(partials));
  for (std::size_t i = partials; i < values.size(); ++i)
    totals[i % partials] = op(totals[i % partials], values[i]);
  return std::accumulate(totals.begin() + 1, totals.end(), totals[0], op);
}

template <class T>
Reductions<T> expected_reductions(BackendKind backend, int block, int threads, int round) {
  std::vector<T> values;
  std::vector<std::uint32_t> words;
  int trues = 0;
  for (int thread = 0; thread < threads; ++thread) {
    values.push_back(thread_value<T>(block, thread, round));
    words.push_back(thread_value<std::uint32_t>(block, thread, round));
    trues += says_true(thread, threads, round) ? 1 : 0;
  }
  return {reduced(backend, values, [](T a, T b) { return add(a, b); }),
          reduced(backend, values, [](T a, T b) { return minimum(a, b); }),
          reduced(backend, values, [](T a, T b) { return maximum(a, b); }),
          reduced(backend, words, mix),
          trues > 0 ? 1u : 0u,
          trues == threads ? 1u : 0u};
}

template <class T>
bool same(T a, T b) {
  using Bytes = std::array<std::byte, sizeof(T)>;
  return std::bit_cast<Bytes>(a) == std::bit_cast<Bytes>(b);
}

template <class T>
class BlockReductions : public testing::Test {
 protected:
  static constexpr int blocks = 3;

  static void check(Context& context, StreamRef& stream, int threads) {
    constexpr std::size_t capacity = std::size_t{blocks} * 1000 * reduction_rounds;
    SymmetricArray<Reductions<T>> results = context.allocate<Reductions<T>>(capacity);
    SymmetricArray<int> thread_count = context.allocate<int>(1);
    run_reductions(context, stream,
                   ReductionCase<T>{threads, blocks, results.data(), thread_count.data()});
    int count = 0;
    stream.copy(&count, thread_count.data(), sizeof count);
    stream.synchronize();
    std::vector<Reductions<T>> found(static_cast<std::size_t>(blocks * count * reduction_rounds));
    stream.copy(found.data(), results.data(), found.size() * sizeof found[0]);
    stream.synchronize();
    for (int block = 0; block < blocks; ++block)
      for (int round = 0; round < reduction_rounds; ++round) {
        const auto expected = expected_reductions<T>(context.backend(), block, count, round);
        for (int thread = 0; thread < count; ++thread) {
          const int index = (block * count + thread) * reduction_rounds + round;
          const auto& mine = found[static_cast<std::size_t>(index)];
          const std::string where = "block " + std::to_string(block) + ", thread " +
                                    std::to_string(thread) + " of " + std::to_string(count) +
                                    ", round " + std::to_string(round);
          ASSERT_TRUE(same(mine.sum, expected.sum)) << where;
          ASSERT_TRUE(same(mine.min, expected.min)) << where;
          ASSERT_TRUE(same(mine.max, expected.max)) << where;
          ASSERT_EQ(mine.mixed, expected.mixed) << where;
          ASSERT_EQ(mine.any_of, expected.any_of) << where;
          ASSERT_EQ(mine.all_of, expected.all_of) << where;
        }
      }
  }
};
using ReducedNumbers = testing::Types<float, bf16, std::int64_t>;
TYPED_TEST_SUITE(BlockReductions, ReducedNumbers);

TYPED_TEST(BlockReductions, AreOfAllThreadsInOneOrder) {
  in_every_mode([&](Context& context) {
    Stream stream = context.make_stream();
    for (const int threads : block_sizes) this->check(context, stream, threads);
  });
}

TEST(BlockMemoryTest, TakesTilesThroughFetches) {
  in_every_mode([&](Context& context) {
    constexpr int most_tiles = 7;
    constexpr std::size_t capacity = std::size_t{most_tiles} * fetch_elements;
    Stream stream = context.make_stream();
    SymmetricArray<std::uint32_t> in = context.allocate<std::uint32_t>(capacity);
    SymmetricArray<std::uint32_t> out = context.allocate<std::uint32_t>(capacity);
    std::vector<std::uint32_t> numbers(capacity);
    std::iota(numbers.begin(), numbers.end(), 1u);
    stream.copy(in.data(), numbers.data(), in.bytes());
    for (const int tiles : {0, 1, 2, 3, most_tiles})
      for (const int blocks : {1, 2, 3}) {
        stream.fill(out.data(), 0, out.bytes());
        run_fetches(context, stream, {tiles, blocks, in.data(), out.data()});
        std::vector<std::uint32_t> found(capacity);
        stream.copy(found.data(), out.data(), out.bytes());
        stream.synchronize();
        std::vector<std::uint32_t> expected(capacity, 0);
        for (int tile = 0; tile < tiles; ++tile) {
          const auto first = numbers.begin() + std::ptrdiff_t{tile} * fetch_elements;
          std::reverse_copy(first, first + fetch_elements,
                            expected.begin() + std::ptrdiff_t{tile} * fetch_elements);
        }
        EXPECT_EQ(found, expected) << tiles << " tiles, " << blocks << " blocks";
      }
  });
}

}  // namespace
}  // namespace iridium::test
