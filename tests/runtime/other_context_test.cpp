// Work on one context's memory, on streams of another.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
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

/// Holds up a stream of one context, has `use` queue work of another one behind that and drop what
/// the work is on, and expects that `take_again` waits for the work.
void expect_wait_for_work(const std::function<void(Context&, StreamRef&)>& use,
                          const std::function<void(Context&)>& take_again) {
  Context owner(small_heap);
  Context other(small_heap);
  Stream stream = other.make_stream();
  std::promise<void> gate;
  std::atomic<bool> passed = false;
  stream.call([&] {
    gate.get_future().wait();
    passed = true;
  });
  use(owner, stream);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    gate.set_value();
  });
  take_again(owner);
  EXPECT_TRUE(passed);
  opener.join();
}

void expect_allocation_waits_for(
    const std::function<void(Context&, StreamRef&, std::byte*)>& queue_work) {
  expect_wait_for_work(
      [&](Context& owner, StreamRef& stream) {
        const auto array = owner.allocate<std::byte>(large);
        queue_work(owner, stream, array.data());
      },
      [](Context& owner) { owner.allocate<std::byte>(large); });
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
  // Two of them do not fit the heap.
  const TeamOptions options = {.scratch_bytes = std::size_t{20} << 20};
  expect_wait_for_work(
      [&](Context& owner, StreamRef& stream) {
        const Team team = owner.make_team({0}, options);
        detail::Access::team(team)->keep_until(detail::Access::stream(stream).mark());
      },
      [&](Context& owner) { owner.make_team({0}, options); });
}

}  // namespace
}  // namespace iridium::test
