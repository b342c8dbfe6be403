#include <gtest/gtest.h>

#include "iridium/device_barrier.h"
#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

class CaptureTest : public ::testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, CaptureTest, ::testing::ValuesIn(both_kinds(3)),
                         [](const auto& test) { return name(test.param); });

IR_SCENARIO(host_calls_while_capturing) {
  Context context(job);
  Team team = context.make_team({0, 1, 2});
  auto from = context.allocate<int>(100);
  auto to = context.allocate<int>(100);
  Stream stream = context.make_stream();
  stream.begin_capture();
  stream.copy(to.data(), from.data(), from.bytes());
  require_error(Errc::capture_unsupported, {}, [&] { context.allocate<int>(1); });
  require_error(Errc::capture_unsupported, {}, [&] { context.make_team({0}); });
  require_error(Errc::capture_unsupported, {}, [&] { context.barrier(); });
  require_error(Errc::capture_unsupported, {}, [&] { team.broadcast(1, 0); });
  require_error(Errc::capture_unsupported, {}, [&] { team.all_gather(1); });
  require_error(Errc::capture_unsupported, {}, [&] { stream.synchronize(); });
  require(stream.capture_status() == CaptureStatus::active, "the capture is still valid");
  stream.fill(from.data(), 0, 4);
  const Graph graph = stream.end_capture();
  require(graph.node_count() == 2, "both operations were recorded, and nothing else");

  Memory memory(context);
  for (int round = 1; round <= 3; ++round) {
    memory.write(from.data(), round);
    memory.write(from.data() + 99, job.rank + round);
    stream.launch(graph);
    stream.synchronize();
    require(memory.read(to.data()) == round && memory.read(to.data() + 99) == job.rank + round &&
                memory.read(from.data()) == 0,
            "replays use the data of the moment");
    context.barrier();
  }
}

TEST_P(CaptureTest, HostCallsAreRefusedAndLeaveTheCaptureValid) {
  expect_all_ok(run_ranks(GetParam().kind, "host_calls_while_capturing", GetParam().size));
}

IR_SCENARIO(graph_keeps_its_arrays) {
  Context context(job, {.heap_bytes = std::size_t{16} << 20,
                        .world = {.scratch_bytes = 4096, .packet_bytes = 4096}});
  const std::size_t most = std::size_t{12} << 20;
  auto array = context.allocate<std::byte>(most);
  std::byte* data = array.data();
  Stream stream = context.make_stream();
  {
    stream.begin_capture();
    stream.fill(data, 7, 1);
    array.retain_on(stream);
    const Graph graph = stream.end_capture();
    array = {};
    require(context.is_symmetric(data, most), "the graph holds the array");
    require_error(Errc::out_of_memory, {}, [&] { context.allocate<std::byte>(most); });
    stream.launch(graph);
    stream.synchronize();
    require(Memory(context).read(data) == std::byte{7}, "and its replays may use it");
  }
  context.allocate<std::byte>(most);
}

TEST_P(CaptureTest, AGraphKeepsItsArraysAlive) {
  expect_all_ok(run_ranks(GetParam().kind, "graph_keeps_its_arrays", GetParam().size));
}

IR_SCENARIO(streams_wait_for_each_other) {
  Context context(job);
  constexpr std::size_t count = 1 << 20;
  auto from = context.allocate<int>(count);
  auto to = context.allocate<int>(count);
  Stream first = context.make_stream();
  Stream second = context.make_stream();
  require_error(Errc::invalid_argument, {}, [&] { second.wait(Event()); });
  for (int round = 1; round <= 50; ++round) {
    first.fill(from.data(), static_cast<unsigned char>(round), from.bytes());
    second.wait(first.record());
    second.copy(to.data(), from.data(), from.bytes());
    first.wait(second.record());
  }
  first.fill(from.data(), 0, from.bytes());
  second.synchronize();
  require(Memory(context).read(to.data() + count - 1) == 0x32323232, "the last round's copy");
}

TEST_P(CaptureTest, StreamsWaitForEachOther) {
  expect_all_ok(run_ranks(GetParam().kind, "streams_wait_for_each_other", GetParam().size));
}

IR_SCENARIO(forked_capture) {
  Context context(job, {.heap_bytes = std::size_t{16} << 20,
                        .world = {.scratch_bytes = 4096, .packet_bytes = 4096}});
  const std::size_t most = std::size_t{8} << 20;
  auto from = context.allocate<int>(100);
  auto array = context.allocate<std::byte>(most);
  std::byte* data = array.data();
  Stream main = context.make_stream();
  Stream branch = context.make_stream();
  const Event outside = branch.record();
  Memory memory(context);
  {
    main.begin_capture();
    main.copy(from.data() + 1, from.data(), sizeof(int));
    branch.wait(main.record());
    require(branch.capture_status() == CaptureStatus::active, "the branch is captured");
    device_barrier(branch, context.world());
    branch.copy(data, from.data() + 1, sizeof(int));
    array.retain_on(branch);
    require_error(Errc::capture_unsupported, {}, [&] { branch.wait(outside); });
    require_error(Errc::invalid_argument, {}, [&] { branch.end_capture(); });
    main.copy(from.data() + 2, from.data(), sizeof(int));
    main.wait(branch.record());
    device_barrier(main, context.world());
    main.copy(from.data() + 3, data, sizeof(int));
    const Graph graph = main.end_capture();
    require(branch.capture_status() == CaptureStatus::none, "the branch runs again");
    array = {};
    require_error(Errc::out_of_memory, {}, [&] { context.allocate<std::byte>(most); });
    for (const int round : {1, 2}) {
      memory.write(from.data(), round);
      branch.launch(graph);
      branch.synchronize();
      for (const int copy : {1, 2, 3})
        require(memory.read(from.data() + copy) == round, "a copy of the round's value");
    }
  }
  context.allocate<std::byte>(most);

  main.begin_capture();
  main.copy(from.data() + 1, from.data(), sizeof(int));
  const Event inside = main.record();
  branch.wait(inside);
  branch.copy(from.data() + 2, from.data(), sizeof(int));
  require_error(Errc::invalid_argument, {}, [&] { main.end_capture(); });
  for (Stream* stream : {&main, &branch}) {
    require(stream->capture_status() == CaptureStatus::none, "the capture is lost");
    require_error(Errc::invalid_argument, {}, [&] { stream->wait(inside); });
    stream->copy(from.data() + 4, from.data(), sizeof(int));
    stream->synchronize();
  }
  require(memory.read(from.data() + 4) == 2, "both streams run again");
}

TEST_P(CaptureTest, OtherStreamsJoinACapture) {
  expect_all_ok(run_ranks(GetParam().kind, "forked_capture", GetParam().size));
}

TEST(StreamOfContext, RefusesBadArguments) {
  Context context;
  Stream stream = context.make_stream();
  std::byte bytes[16] = {};
  expect_error(Errc::invalid_argument, [&] { stream.copy(nullptr, bytes, 1); });
  expect_error(Errc::invalid_argument, [&] { stream.copy(bytes, nullptr, 1); });
  expect_error(Errc::invalid_argument, [&] { stream.copy(bytes, bytes + 7, 8); });
  expect_error(Errc::invalid_argument, [&] { stream.copy(bytes + 7, bytes, 8); });
  expect_error(Errc::invalid_argument, [&] { stream.fill(nullptr, 0, 1); });
  expect_error(Errc::invalid_argument, [&] { stream.call(nullptr); });
  stream.copy(nullptr, nullptr, 0);
  // These only touch.
  stream.copy(bytes, bytes + 8, 8);
  stream.copy(bytes + 8, bytes, 8);
  stream.synchronize();
}

TEST(StreamOfContext, BorrowedIsTheSameStream) {
  Context context;
  Stream stream = context.make_stream();
  StreamRef borrowed = context.borrow_stream(stream.native_handle());
  EXPECT_EQ(borrowed.native_handle(), stream.native_handle());
  borrowed.begin_capture();
  EXPECT_EQ(stream.capture_status(), CaptureStatus::active);
  expect_error(Errc::capture_unsupported, [&] { context.barrier(); });
  stream.end_capture();
  context.barrier();
}

TEST(StreamOfContext, AnUnknownHandleIsRefusedOnTheHost) {
  Context context(ContextOptions{.backend = BackendKind::host});
  int number = 0;
  expect_error(Errc::invalid_argument, [&] { context.borrow_stream(&number); });
}

TEST(StreamOfContext, ABorrowedStreamOfAnotherContextCountsForBoth) {
  Context owner;
  Context borrower;
  Stream stream = owner.make_stream();
  StreamRef borrowed = borrower.borrow_stream(stream.native_handle());
  borrowed.begin_capture();
  expect_error(Errc::capture_unsupported, [&] { owner.barrier(); });
  expect_error(Errc::capture_unsupported, [&] { borrower.barrier(); });
}

}  // namespace
}  // namespace iridium::test
