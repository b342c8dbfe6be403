#include <gtest/gtest.h>

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
