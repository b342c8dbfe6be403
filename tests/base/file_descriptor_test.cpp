#include "base/file_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <utility>

namespace iridium {
namespace {

int open_something() {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool is_open(int number) {
  return ::fcntl(number, F_GETFD) >= 0;
}

TEST(FileDescriptors, StartEmpty) {
  const FileDescriptor descriptor;
  EXPECT_FALSE(descriptor);
  EXPECT_EQ(descriptor.get(), -1);
}

TEST(FileDescriptors, CloseOnDestruction) {
  const int number = open_something();
  {
    const FileDescriptor descriptor(number);
    EXPECT_TRUE(descriptor);
    EXPECT_EQ(descriptor.get(), number);
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(FileDescriptors, CloseOnReset) {
  const int number = open_something();
  FileDescriptor descriptor(number);
  descriptor.reset();
  EXPECT_FALSE(descriptor);
  EXPECT_FALSE(is_open(number));
  descriptor.reset();
}

TEST(FileDescriptors, MoveConstructionHandsOver) {
  const int number = open_something();
  FileDescriptor from(number);
  {
    const FileDescriptor to(std::move(from));
    EXPECT_EQ(to.get(), number);
    EXPECT_FALSE(from);  // NOLINT(bugprone-use-after-move): this is what is tested
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(FileDescriptors, MoveAssignmentClosesTheOldOne) {
  const int first = open_something();
  const int second = open_something();
  FileDescriptor to(first);
  FileDescriptor from(second);
  to = std::move(from);
  EXPECT_EQ(to.get(), second);
  EXPECT_FALSE(from);  // NOLINT(bugprone-use-after-move): this is what is tested
  EXPECT_FALSE(is_open(first));
  EXPECT_TRUE(is_open(second));
}

TEST(FileDescriptors, SelfAssignmentKeepsItOpen) {
  const int number = open_something();
  FileDescriptor descriptor(number);
  FileDescriptor& same = descriptor;
  descriptor = std::move(same);
  EXPECT_EQ(descriptor.get(), number);
  EXPECT_TRUE(is_open(number));
}

}  // namespace
}  // namespace iridium
