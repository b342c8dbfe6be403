#include "cli/output_stream.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>

#include "cli/descriptor.h"

namespace iridium::cli {
namespace {

std::string read_once(const Descriptor& descriptor) {
  std::string text(1 << 20, '\0');
  const ssize_t bytes = ::read(descriptor.number(), text.data(), text.size());
  text.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  return text;
}

TEST(OutputStream, WritesWholeLinesOfAtMostAPipesAtomicSize) {
  Pipe pipe = make_pipe();
  OutputStream stream(pipe.write_end.number());
  const std::string line = std::string(99, 'a') + "\n";
  std::string expected;
  for (int i = 0; i < 100; ++i) expected += line;
  stream.pending() += expected;
  std::string received;
  while (stream.has_pending()) {
    stream.write_some();
    const std::string piece = read_once(pipe.read_end);
    EXPECT_EQ(piece.size(), std::min<std::size_t>(4000, expected.size() - received.size()));
    EXPECT_FALSE(stream.is_inside_line());
    received += piece;
  }
  EXPECT_EQ(received, expected);
}

TEST(OutputStream, TellsWhenItIsInsideALine) {
  Pipe pipe = make_pipe();
  OutputStream stream(pipe.write_end.number());
  stream.pending() += std::string(PIPE_BUF, 'a') + "\nb\n";
  stream.write_some();
  EXPECT_TRUE(stream.is_inside_line());
  EXPECT_EQ(read_once(pipe.read_end), std::string(PIPE_BUF, 'a'));
  stream.write_some();
  EXPECT_FALSE(stream.is_inside_line());
  EXPECT_EQ(read_once(pipe.read_end), "\nb\n");
  EXPECT_FALSE(stream.has_pending());
}

TEST(OutputStream, DropsWhatCannotBeWrittenAndSaysWhy) {
  ::signal(SIGPIPE, SIG_IGN);
  Pipe pipe = make_pipe();
  pipe.read_end.reset();
  OutputStream stream(pipe.write_end.number());
  stream.pending() += "lost\n";
  stream.write_some();
  ::signal(SIGPIPE, SIG_DFL);
  EXPECT_EQ(stream.failure(), EPIPE);
  EXPECT_FALSE(stream.has_pending());
  EXPECT_FALSE(stream.is_inside_line());
}

}  // namespace
}  // namespace iridium::cli
