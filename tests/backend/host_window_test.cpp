#include "backend/host/host_window.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <thread>
#include <vector>

#include "backend/host/host_backend.h"
#include "base/random.h"
#include "support/ranks.h"
#include "support/resources.h"

namespace iridium {
namespace {

using test::expect_error;

const std::size_t stride = 4 * static_cast<std::size_t>(::getpagesize());

FileDescriptor make_segment(std::size_t bytes = stride) {
  return make_host_backend()->create_segment(bytes);
}

FileDescriptor unsealed_segment() {
  FileDescriptor segment(::memfd_create("iridium-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(segment.get(), static_cast<off_t>(stride)), 0);
  return segment;
}

std::span<std::byte> bytes_of(const Window& window, int rank) {
  return {window.segment(rank), stride};
}

/// As another process sees the segment.
std::byte read_byte(const FileDescriptor& segment, std::size_t offset) {
  std::byte byte{0};
  EXPECT_EQ(::pread(segment.get(), &byte, 1, static_cast<off_t>(offset)), 1);
  return byte;
}

TEST(HostWindow, LaysSegmentsSideBySide) {
  const auto window = open_host_window(random_id(), 3, stride);
  EXPECT_EQ(window->stride(), stride);
  for (const int rank : {0, 1, 2})
    EXPECT_EQ(window->segment(rank), window->segment(0) + static_cast<std::size_t>(rank) * stride);
}

TEST(HostWindow, MapsTheMemoryOfTheSegment) {
  const auto window = open_host_window(random_id(), 3, stride);
  std::vector<FileDescriptor> segments;
  for (int rank = 0; rank < 3; ++rank) {
    segments.push_back(make_segment());
    window->map(rank, segments.back());
  }
  for (int rank = 0; rank < 3; ++rank)
    std::fill_n(window->segment(rank), stride, static_cast<std::byte>(rank + 1));
  for (int rank = 0; rank < 3; ++rank)
    for (const std::size_t offset : {std::size_t{0}, stride / 2, stride - 1})
      EXPECT_EQ(read_byte(segments[static_cast<std::size_t>(rank)], offset),
                static_cast<std::byte>(rank + 1));
}

TEST(HostWindow, SegmentsStartAsZero) {
  const auto window = open_host_window(random_id(), 1, stride);
  window->map(0, make_segment());
  const auto bytes = bytes_of(*window, 0);
  EXPECT_TRUE(
      std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; }));
}

TEST(HostWindow, OfTwoContextsShowTheSameSegment) {
  const auto left = open_host_window(random_id(), 2, stride);
  const auto right = open_host_window(random_id(), 2, stride);
  ASSERT_NE(left, right);
  const FileDescriptor segment = make_segment();
  left->map(0, segment);
  right->map(1, segment);
  ASSERT_NE(left->segment(0), right->segment(1));
  left->segment(0)[stride - 1] = std::byte{42};
  EXPECT_EQ(right->segment(1)[stride - 1], std::byte{42});
  right->segment(1)[0] = std::byte{43};
  EXPECT_EQ(left->segment(0)[0], std::byte{43});
}

TEST(HostWindow, IsSharedByTheRanksOfAContext) {
  const std::uint64_t context = random_id();
  const auto first = open_host_window(context, 2, stride);
  const auto second = open_host_window(context, 2, stride);
  EXPECT_EQ(first, second);
  EXPECT_NE(first, open_host_window(random_id(), 2, stride));
}

TEST(HostWindow, IsOpenedOnceByThreadsAtTheSameTime) {
  const std::uint64_t context = random_id();
  std::vector<std::shared_ptr<Window>> windows(8);
  std::vector<FileDescriptor> segments;
  for (std::size_t rank = 0; rank < windows.size(); ++rank) segments.push_back(make_segment());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < windows.size(); ++i)
    threads.emplace_back([&, i] {
      windows[i] = open_host_window(context, static_cast<int>(windows.size()), stride);
      for (std::size_t rank = 0; rank < segments.size(); ++rank)
        windows[i]->map(static_cast<int>(rank), segments[rank]);
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& window : windows) EXPECT_EQ(window, windows[0]);
  EXPECT_EQ(test::segment_mappings(), windows.size());
}

TEST(HostWindow, KeepsTheFirstMappingOfARank) {
  const auto window = open_host_window(random_id(), 1, stride);
  window->map(0, make_segment());
  window->segment(0)[0] = std::byte{1};
  window->map(0, make_segment());
  EXPECT_EQ(window->segment(0)[0], std::byte{1});
}

TEST(HostWindow, RefusesASegmentOfAnotherSize) {
  const auto window = open_host_window(random_id(), 2, stride);
  for (const std::size_t bytes : {stride / 2, 2 * stride, std::size_t{0}}) {
    const Error error = expect_error(Errc::protocol, [&] { window->map(1, make_segment(bytes)); });
    EXPECT_EQ(error.ranks(), std::vector<int>{1});
    const std::string message = error.what();
    for (const std::string& part :
         {std::string("rank 1"), std::to_string(bytes), std::to_string(stride)})
      EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  EXPECT_EQ(test::segment_mappings(), 0u);
}

TEST(HostWindow, RefusesASegmentThatCouldShrink) {
  const auto window = open_host_window(random_id(), 2, stride);
  const Error error = expect_error(Errc::protocol, [&] { window->map(0, unsealed_segment()); });
  EXPECT_EQ(error.ranks(), std::vector<int>{0});
}

TEST(HostWindow, RefusesADescriptorThatIsNoSegment) {
  const auto window = open_host_window(random_id(), 1, stride);
  const FileDescriptor file(::open("/dev/null", O_RDWR | O_CLOEXEC));
  expect_error(Errc::protocol, [&] { window->map(0, file); });
  expect_error(Errc::system, [&] { window->map(0, FileDescriptor()); });
}

TEST(HostWindow, CanBeMappedAfterARefusal) {
  const auto window = open_host_window(random_id(), 1, stride);
  expect_error(Errc::protocol, [&] { window->map(0, unsealed_segment()); });
  window->map(0, make_segment());
  window->segment(0)[0] = std::byte{5};
  EXPECT_EQ(window->segment(0)[0], std::byte{5});
}

TEST(HostWindow, UnmapsWithTheLastReference) {
  const std::uint64_t context = random_id();
  auto first = open_host_window(context, 2, stride);
  auto second = open_host_window(context, 2, stride);
  first->map(0, make_segment());
  second->map(1, make_segment());
  EXPECT_EQ(test::segment_mappings(), 2u);
  first.reset();
  EXPECT_EQ(test::segment_mappings(), 2u);
  second.reset();
  EXPECT_EQ(test::segment_mappings(), 0u);
}

TEST(HostWindow, IsNewAfterTheLastReference) {
  const std::uint64_t context = random_id();
  {
    const auto window = open_host_window(context, 1, stride);
    window->map(0, make_segment());
    window->segment(0)[0] = std::byte{1};
  }
  const auto window = open_host_window(context, 1, stride);
  window->map(0, make_segment());
  EXPECT_EQ(window->segment(0)[0], std::byte{0});
}

TEST(HostWindow, RefusesMoreAddressesThanThereAre) {
  const Error error = expect_error(Errc::out_of_memory,
                                   [] { open_host_window(random_id(), 64, std::size_t{1} << 50); });
  EXPECT_NE(std::string(error.what()).find("64 segments"), std::string::npos);
}

}  // namespace
}  // namespace iridium
