#include "device/block_kernels.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "iridium/device/block_memory.h"
#include "iridium/device/reduce.h"

namespace iridium::test {
namespace {

template <class T, int threads>
struct ReductionKernel {
  ReductionCase<T> work;

  IR_DEVICE void operator()(BlockOf<threads> block) const {
    const int count = block.thread_count();
    if (block.index() == 0 && block.is_leader()) *work.thread_count = count;
    Reductions<T>* const mine =
        work.results + (block.index() * count + block.thread()) * reduction_rounds;
    for (int round = 0; round < reduction_rounds; ++round) {
      const T value = thread_value<T>(block.index(), block.thread(), round);
      const auto word = thread_value<std::uint32_t>(block.index(), block.thread(), round);
      const bool says = says_true(block.thread(), count, round);
      // Two of one type follow each other at once.
      const T total = sum(block, value);
      mine[round] = {total,
                     min(block, value),
                     max(block, value),
                     reduce(block, word, mix),
                     any_of(block, says) ? 1u : 0u,
                     all_of(block, says) ? 1u : 0u};
    }
  }
};

template <class T, int... index>
void launch_reductions(const Context& context, StreamRef& stream, const ReductionCase<T>& work,
                       std::integer_sequence<int, index...>) {
  const auto launch_if = [&](auto kernel, int threads) {
    if (work.threads == threads) context.launch(stream, work.blocks, kernel);
  };
  (launch_if(ReductionKernel<T, block_sizes[index]>{work}, block_sizes[index]), ...);
}

struct FetchKernel {
  static constexpr int vectors = fetch_elements / 4;
  struct alignas(16) Vector {
    std::uint32_t words[4];
  };

  FetchCase work;

  IR_DEVICE void operator()(Block block) const {
    const BlockMemory<Vector, 2 * vectors, struct Fetched> fetched(block);
    const BlockMemory<std::uint32_t, fetch_elements, struct Turned> turned(block);
    fetch(block, fetched.data(), block.index());
    int half = 0;
    for (int tile = block.index(); tile < work.tiles; tile += block.count(), half = 1 - half) {
      const Vector* const here = fetched.data() + half * vectors;
      fetch(block, fetched.data() + (1 - half) * vectors, tile + block.count());
      target::await_fetches<1>(block.seat());
      // A thread finds what it has fetched itself, and after a barrier, what others have turned.
      for (int i = block.thread(); i < vectors; i += block.thread_count()) {
        Vector mine;
        target::read_vector(&mine, target::block_address(const_cast<Vector*>(here + i)));
        for (int word = 0; word < 4; ++word)
          turned[fetch_elements - 1 - (4 * i + word)] = mine.words[word];
      }
      block.sync();
      std::uint32_t* const out = work.out + static_cast<std::size_t>(tile) * fetch_elements;
      for (int i = block.thread(); i < fetch_elements; i += block.thread_count())
        out[i] = turned[i];
      block.sync();
    }
    target::await_fetches<0>(block.seat());
  }

 private:
  /// Of no tile, nothing.
  IR_DEVICE void fetch(Block block, Vector* to, int tile) const {
    const std::uint32_t* const from = work.in + static_cast<std::size_t>(tile) * fetch_elements;
    for (int i = block.thread(); tile < work.tiles && i < vectors; i += block.thread_count())
      target::fetch_vector(block.seat(), target::block_address(to + i), from + 4 * i);
    target::end_fetch(block.seat());
  }
};

}  // namespace

template <Number T>
void run_reductions(const Context& context, StreamRef& stream, const ReductionCase<T>& work) {
  launch_reductions(context, stream, work,
                    std::make_integer_sequence<int, static_cast<int>(std::size(block_sizes))>());
}
template void run_reductions(const Context&, StreamRef&, const ReductionCase<float>&);
template void run_reductions(const Context&, StreamRef&, const ReductionCase<bf16>&);
template void run_reductions(const Context&, StreamRef&, const ReductionCase<std::int64_t>&);

void run_fetches(const Context& context, StreamRef& stream, const FetchCase& work) {
  context.launch(stream, work.blocks, FetchKernel{work});
}

}  // namespace iridium::test
