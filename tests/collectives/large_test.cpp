// More elements than 32 bits count. Needs 5 GB: runs where IRIDIUM_TEST_FULL is 1.
#include <gtest/gtest.h>

#include "collectives/calls.h"
#include "support/memory.h"
#include "support/ranks.h"
#include "support/sampling.h"

namespace iridium::test {
namespace {

constexpr std::size_t count = (std::size_t{1} << 31) + 33;
/// Where an index of 31 bits, or one of all but the last tile, would go wrong.
constexpr std::size_t places[] = {0, (std::size_t{1} << 31) - 1, std::size_t{1} << 31, count - 1};

class LargeArray {
 public:
  LargeArray(Context& context, const SymmetricArray<std::uint8_t>& array)
      : memory_(context), stream_(context.make_stream()), array_(array) {}

  /// `base` everywhere but at the places, each of which has a value of its own.
  void set(int base) {
    stream_.fill(array_.data(), static_cast<unsigned char>(base), count);
    stream_.synchronize();
    for (std::size_t i = 0; i < std::size(places); ++i)
      memory_.write(array_.data() + places[i],
                    static_cast<std::uint8_t>(static_cast<std::size_t>(base) * (10 + i)));
  }
  void require_all(int base, const std::string& what) {
    for (std::size_t i = 0; i < std::size(places); ++i)
      require(memory_.read(array_.data() + places[i]) ==
                  static_cast<std::uint8_t>(static_cast<std::size_t>(base) * (10 + i)),
              what + ": place " + std::to_string(i));
    for (std::size_t at = 1; at < count - 1; at += 123'456'789)
      require(memory_.read(array_.data() + at) == base, what + ": element " + std::to_string(at));
  }

 private:
  Memory memory_;
  Stream stream_;
  const SymmetricArray<std::uint8_t>& array_;
};

IR_SCENARIO(large_calls) {
  Context context(job, {.heap_bytes = count + (std::size_t{64} << 20)});
  Team team = context.world();
  Stream stream = context.make_stream();
  const auto data = context.allocate<std::uint8_t>(count);
  LargeArray array(context, data);
  const auto finish = [&](int base, const std::string& what) {
    stream.synchronize();
    team.check();
    array.require_all(base, what);
    context.barrier();
  };
  for (const auto algorithm : {AllReduceAlgorithm::one_shot, AllReduceAlgorithm::two_shot}) {
    array.set(job.rank + 1);
    all_reduce(stream, team, data.data(), data.data(), count, {.algorithm = algorithm});
    finish(3, "plain " + std::string(name(algorithm)));
  }
  array.set(job.rank + 1);
  all_reduce(stream, team, data, data, count, {.algorithm = AllReduceAlgorithm::two_shot});
  finish(3, "symmetric two_shot");
  array.set(job.rank + 1);
  broadcast(stream, team, data.data(), data.data(), count, 1);
  finish(2, "plain broadcast");
  array.set(job.rank + 1);
  broadcast(stream, team, data, data, count, 0);
  finish(1, "symmetric broadcast");
}
TEST(LargeCalls, AreRightBeyond31BitsOfElements) {
  if (!is_full_run()) GTEST_SKIP() << "IRIDIUM_TEST_FULL is not 1";
  expect_all_ok(run_ranks(RankKind::processes, "large_calls", 2));
}

}  // namespace
}  // namespace iridium::test
