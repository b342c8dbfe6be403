// Work on one context's memory, on streams of another.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "iridium/iridium.h"
#include "runtime/access.h"
#include "runtime/team_state.h"
#include "support/ranks.h"

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

TEST(OtherContexts, StreamsThatGoKeepWhatTheyRetain) {
  Context owner(small_heap);
  Context other(small_heap);
  // Two of them fit the heap: nobody has to wait for the work.
  constexpr std::size_t bytes = 16 << 20;
  const std::byte* retained = nullptr;
  std::promise<void> gate;
  {
    Stream stream = other.make_stream();
    stream.call([opened = gate.get_future().share()] { opened.wait(); });
    const auto array = owner.allocate<std::byte>(bytes);
    stream.fill(array.data(), 1, array.bytes());
    array.retain_on(stream);
    retained = array.data();
  }
  EXPECT_NE(owner.allocate<std::byte>(bytes).data(), retained);
  gate.set_value();
}

TEST(OtherContexts, TeamsOutliveWorkOnStreamsThatHaveGone) {
  Context owner(small_heap);
  Context other(small_heap);
  Stream stream = other.make_stream();
  std::promise<void> gate;
  std::atomic<bool> passed = false;
  stream.call([&] {
    gate.get_future().wait();
    passed = true;
  });
  // Two of them do not fit the heap.
  const TeamOptions options = {.scratch_bytes = std::size_t{20} << 20};
  {
    const Team team = owner.make_team({0}, options);
    detail::Access::team(team)->keep_until(detail::Access::stream(stream).mark());
  }
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    gate.set_value();
  });
  owner.make_team({0}, options);
  EXPECT_TRUE(passed);
  opener.join();
}

}  // namespace
}  // namespace iridium::test
