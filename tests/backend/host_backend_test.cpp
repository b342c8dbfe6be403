#include "backend/host/host_backend.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "support/ranks.h"

namespace iridium {
namespace {

using test::expect_error;

TEST(HostBackend, HasSegmentsOfWholePages) {
  EXPECT_EQ(make_host_backend()->granularity(), static_cast<std::size_t>(::getpagesize()));
}

TEST(HostBackend, AcceptsHeapsUpToTheMachinesMemory) {
  const auto backend = make_host_backend();
  const std::size_t limit = host_memory_bytes();
  for (const int ranks : {1, 2, 7, 64})
    EXPECT_NO_THROW(backend->check_heap(limit / static_cast<std::size_t>(ranks), ranks)) << ranks;
}

TEST(HostBackend, RefusesLargerHeapsWithBothFigures) {
  const auto backend = make_host_backend();
  const std::size_t limit = host_memory_bytes();
  for (const int ranks : {1, 2, 7, 64})
    for (const std::size_t bytes :
         {limit / static_cast<std::size_t>(ranks) + 1, std::numeric_limits<std::size_t>::max()}) {
      const Error error =
          expect_error(Errc::out_of_memory, [&] { backend->check_heap(bytes, ranks); });
      const std::string message = error.what();
      for (const std::string& part :
           {format_bytes(bytes), format_bytes(limit), std::to_string(ranks) + " ranks"})
        EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
    }
}

TEST(HostBackend, MakesSealedSegmentsOfTheSizeAskedFor) {
  const FileDescriptor segment = make_host_backend()->create_segment(1 << 20);
  struct stat status = {};
  ASSERT_EQ(::fstat(segment.get(), &status), 0);
  EXPECT_EQ(status.st_size, 1 << 20);
  EXPECT_NE(::ftruncate(segment.get(), 4096), 0) << "a peer could shrink it";
  EXPECT_NE(::ftruncate(segment.get(), 2 << 20), 0) << "a peer could grow it";
  EXPECT_NE(::fcntl(segment.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(HostBackend, RefusesASegmentNoFileCanHold) {
  const auto backend = make_host_backend();
  expect_error(Errc::system,
               [&] { backend->create_segment(std::numeric_limits<std::size_t>::max()); });
}

TEST(HostBackend, ZeroesExactlyWhatItIsTold) {
  std::vector<std::byte> memory(100, std::byte{0xff});
  make_host_backend()->zero(memory.data() + 10, 50);
  for (std::size_t i = 0; i < memory.size(); ++i)
    EXPECT_EQ(memory[i], i >= 10 && i < 60 ? std::byte{0} : std::byte{0xff}) << i;
}

TEST(HostBackend, ZeroesWholePagesAndPartsOfPagesOfASegment) {
  const auto backend = make_host_backend();
  const std::size_t page = backend->granularity();
  const auto window = backend->open_window(random_id(), 1, 4 * page);
  const FileDescriptor segment = backend->create_segment(4 * page);
  window->map(0, segment);
  for (const std::size_t start : {std::size_t{0}, std::size_t{1}, page - 1, page, page + 1})
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, page - 1, page, page + 1,
                                    2 * page - 1, 2 * page, 2 * page + 1, 4 * page - start}) {
      std::fill_n(window->segment(0), 4 * page, std::byte{0xff});
      backend->zero(window->segment(0) + start, bytes);
      for (std::size_t i = 0; i < 4 * page; ++i)
        ASSERT_EQ(window->segment(0)[i],
                  i >= start && i < start + bytes ? std::byte{0} : std::byte{0xff})
            << "byte " << i << " after zeroing " << bytes << " at " << start;
    }
}

TEST(HostBackend, RunsGrids) {
  EXPECT_GE(make_host_backend()->max_blocks({}), 1);
}

TEST(HostBackend, DescribesItself) {
  const BackendInfo info = describe_host_backend();
  EXPECT_EQ(info.kind, BackendKind::host);
  EXPECT_TRUE(info.available);
  EXPECT_TRUE(info.reason.empty());
  ASSERT_EQ(info.devices.size(), 1u);
  EXPECT_FALSE(info.devices[0].name.empty());
  EXPECT_GE(info.devices[0].processors, 1);
  EXPECT_EQ(info.devices[0].memory_bytes, host_memory_bytes());
  EXPECT_GT(host_memory_bytes(), 0u);
  for (const Capability& capability : info.capabilities) {
    EXPECT_FALSE(capability.name.empty());
    EXPECT_FALSE(capability.detail.empty()) << capability.name;
  }
}

TEST(HostBackend, KnowsWhichStreamsAreIts) {
  const auto backend = make_host_backend();
  const auto stream = backend->make_stream();
  EXPECT_EQ(backend->borrow_stream(stream->native_handle()), stream);
  int something = 0;
  expect_error(Errc::invalid_argument, [&] { backend->borrow_stream(&something); });
  expect_error(Errc::invalid_argument, [&] { backend->borrow_stream(nullptr); });
  stream->close();
}

}  // namespace
}  // namespace iridium
