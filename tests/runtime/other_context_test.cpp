// Work on one context's memory, on streams of another.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "iridium/iridium.h"

namespace iridium::test {
namespace {

const ContextOptions small_heap = {.heap_bytes = std::size_t{96} << 20};
/// Two of them do not fit the heap.
constexpr std::size_t large = std::size_t{40} << 20;

/// Queues work on an array of one context on a stream of another, drops the array, and allocates
/// as much again: that has to wait for the work.
void expect_allocation_waits_for(
    const std::function<void(Context&, StreamRef&, std::byte*)>& queue_work) {
  Context owner(small_heap);
  Context other(small_heap);
  Stream stream = other.make_stream();
  std::promise<void> gate;
  std::atomic<bool> passed = false;
  stream.call([&] {
    gate.get_future().wait();
    passed = true;
  });
  auto array = owner.allocate<std::byte>(large);
  queue_work(owner, stream, array.data());
  array = {};
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    gate.set_value();
  });
  owner.allocate<std::byte>(large);
  EXPECT_TRUE(passed);
  opener.join();
}

TEST(OtherContexts, StreamsThatPutAreWaitedFor) {
  static const std::uint32_t value = 7;
  expect_allocation_waits_for([](Context& owner, StreamRef& stream, std::byte* to) {
    put(stream, owner.world(), to, &value, sizeof value, 0);
  });
}

TEST(OtherContexts, StreamsOfCollectivesAreWaitedFor) {
  expect_allocation_waits_for([](Context& owner, StreamRef& stream, std::byte* to) {
    auto* const numbers = reinterpret_cast<std::uint32_t*>(to);
    all_reduce(stream, owner.world(), numbers, numbers, 1000);
  });
}

}  // namespace
}  // namespace iridium::test
