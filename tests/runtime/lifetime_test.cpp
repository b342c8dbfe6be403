// Nothing is left behind: descriptors, mappings, threads, files.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "support/memory.h"
#include "support/ranks.h"
#include "support/resources.h"

namespace iridium::test {
namespace {

struct Holdings {
  std::size_t descriptors = open_descriptors();
  std::size_t mappings = segment_mappings();

  bool operator==(const Holdings&) const = default;
};

TEST(Lifetime, TwoHundredContextsInARowLeaveNothing) {
  const ScopedRuntimeDirectory directory;
  const auto jobs = make_local_jobs(2);
  const auto one_context = [&](int index) {
    std::thread other([&] {
      Context context(jobs[1], {.heap_bytes = std::size_t{32} << 20});
      auto array = context.allocate<int>(100);
      Memory(context).write(array.at(0), index);
      context.barrier();
    });
    Context context(jobs[0], {.heap_bytes = std::size_t{32} << 20});
    auto array = context.allocate<int>(100);
    Stream stream = context.make_stream();
    context.barrier();
    EXPECT_EQ(Memory(context).read(array.data()), index);
    other.join();
  };
  one_context(0);
  const Holdings before;
  for (int i = 1; i <= 200; ++i) one_context(i);
  const Holdings after;
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_EQ(after.mappings, before.mappings);
  EXPECT_EQ(after.mappings, 0u);
  EXPECT_TRUE(files_in(directory.path()).empty());
}

TEST(Lifetime, FailedContextsLeaveNothing) {
  const ScopedRuntimeDirectory directory;
  // The first context also starts what a sanitizer keeps running beside the program.
  spawn(2, [](Context&) {});
  const Holdings before;
  const std::size_t threads_before = threads();
  for (int i = 0; i < 5; ++i) {
    const auto jobs = make_local_jobs(2);
    expect_error(Errc::timeout, [&] {
      Context context(jobs[0], {.construction_timeout = std::chrono::milliseconds(20)});
    });
    expect_error(Errc::timeout, [&] {
      Context context(jobs[1], {.construction_timeout = std::chrono::milliseconds(20)});
    });
    expect_error(Errc::out_of_memory,
                 [&] { spawn(3, {.heap_bytes = std::size_t{1} << 20}, [](Context&) {}); });
  }
  EXPECT_EQ(Holdings(), before);
  EXPECT_EQ(threads(), threads_before);
  EXPECT_TRUE(files_in(directory.path()).empty());
}

TEST(Lifetime, EachSegmentIsMappedOnceForAllRanksOfAProcess) {
  spawn(4, [](Context& context) {
    context.barrier();
    EXPECT_EQ(segment_mappings(), 4u);
    context.barrier();
  });
  EXPECT_EQ(segment_mappings(), 0u);
}

IR_SCENARIO(contexts_in_a_row) {
  // No barrier between them: fast ranks are in the next rendezvous while slow ones leave the last.
  for (int i = 0; i < 30; ++i) {
    Context context(job, {.heap_bytes = std::size_t{32} << 20});
    require(context.world().broadcast(i, i % job.size) == i, "all ranks are in the same context");
  }
}

TEST(Lifetime, ContextsInARowNeverMeetEachOther) {
  const ScopedRuntimeDirectory directory;
  expect_all_ok(run_ranks(RankKind::processes, "contexts_in_a_row", 4));
  expect_all_ok(run_ranks(RankKind::threads, "contexts_in_a_row", 4));
  EXPECT_TRUE(files_in(directory.path()).empty());
}

TEST(Lifetime, StreamsWithQueuedWorkOutliveTheirContext) {
  auto done = std::make_shared<std::atomic<int>>(0);
  {
    Context context;
    auto array = context.allocate<int>(1000);
    Stream stream = context.make_stream();
    for (int i = 0; i < 100; ++i) stream.call([done] { ++*done; });
    stream.fill(array.data(), 1, array.bytes());
    array.retain_on(stream);
  }
  for (int i = 0; i < 1000 && *done < 100; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(*done, 100);
}

IR_SCENARIO(work_on_a_heap_that_is_gone) {
  // On the heap, and not opened where the test fails: the work would end the process first.
  const auto gate = std::make_shared<std::promise<void>>();
  std::optional<Context> context(std::in_place, job);
  Stream stream = context->make_stream();
  auto array = context->allocate<int>(1000);
  stream.call([gate] { gate->get_future().wait(); });
  stream.fill(array.data(), 1, array.bytes());
  const std::size_t mapped = segment_mappings();
  array = {};
  context.reset();
  require(segment_mappings() == mapped, "a segment stays mapped while a stream works on it");
  gate->set_value();
  stream.synchronize();
  {
    const Context next(job);
  }
  require(segment_mappings() == 0, "it goes with the next context");
}

TEST(Lifetime, SegmentsOutliveTheirContextUntilTheWorkOnThemIsDone) {
  expect_all_ok(run_ranks(RankKind::processes, "work_on_a_heap_that_is_gone", 1));
}

}  // namespace
}  // namespace iridium::test
