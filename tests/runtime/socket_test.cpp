#include "runtime/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "support/ranks.h"
#include "support/resources.h"
#include "support/sanitizers.h"

namespace iridium {
namespace {

using std::chrono::milliseconds;
using test::expect_error;

const milliseconds long_enough(20'000);

Message message_of(std::uint64_t sequence, Bytes payload) {
  Message message;
  message.sequence = sequence;
  message.payload = std::move(payload);
  return message;
}

Bytes pattern(std::size_t bytes) {
  Bytes payload(bytes);
  for (std::size_t i = 0; i < bytes; ++i) payload[i] = static_cast<std::byte>(i * 31 + i / 256);
  return payload;
}

/// Small buffers, so that a message needs many pieces.
std::pair<FileDescriptor, FileDescriptor> small_socket_pair() {
  auto pair = make_socket_pair();
  const int bytes = 4096;
  for (const FileDescriptor* end : {&pair.first, &pair.second})
    for (const int option : {SO_SNDBUF, SO_RCVBUF})
      EXPECT_EQ(::setsockopt(end->get(), SOL_SOCKET, option, &bytes, sizeof bytes), 0);
  return pair;
}

void wait_readable(const FileDescriptor& connection) {
  pollfd poll = {connection.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&poll, 1, static_cast<int>(long_enough.count())), 1);
}

/// The next message, waited for.
std::optional<Message> receive(const FileDescriptor& connection, MessageReader& reader) {
  while (true) {
    if (auto message = reader.next()) return message;
    wait_readable(connection);
    if (testing::Test::HasFatalFailure()) return std::nullopt;
    if (read_available(connection, reader) == ReadResult::closed) return reader.next();
  }
}

/// A pipe whose read end gives `text` and then ends.
FileDescriptor pipe_with(const std::string& text) {
  std::array<int, 2> ends = {};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const FileDescriptor write_end(ends[1]);
  EXPECT_EQ(::write(write_end.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  return FileDescriptor(ends[0]);
}

std::string read_text(const FileDescriptor& descriptor) {
  std::array<char, 256> text = {};
  const ssize_t count = ::read(descriptor.get(), text.data(), text.size());
  return count < 0 ? "cannot be read" : std::string(text.data(), static_cast<std::size_t>(count));
}

bool is_private_and_non_blocking(const FileDescriptor& descriptor) {
  return (::fcntl(descriptor.get(), F_GETFL) & O_NONBLOCK) != 0 &&
         (::fcntl(descriptor.get(), F_GETFD) & FD_CLOEXEC) != 0;
}

/// Sends descriptors the way a peer of another make could: several with one byte.
void send_descriptors(const FileDescriptor& connection, const std::vector<int>& numbers) {
  std::byte byte{0};
  iovec piece = {&byte, 1};
  std::vector<char> control(CMSG_SPACE(numbers.size() * sizeof(int)));
  msghdr header = {};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* entry = CMSG_FIRSTHDR(&header);
  entry->cmsg_level = SOL_SOCKET;
  entry->cmsg_type = SCM_RIGHTS;
  entry->cmsg_len = CMSG_LEN(numbers.size() * sizeof(int));
  std::memcpy(CMSG_DATA(entry), numbers.data(), numbers.size() * sizeof(int));
  ASSERT_EQ(::sendmsg(connection.get(), &header, MSG_NOSIGNAL), 1);
}

class Listening : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

  test::ScopedRuntimeDirectory directory_;
};

TEST_F(Listening, ConnectAndAcceptGiveALink) {
  const FileDescriptor listener = listen_at(path("socket"));
  EXPECT_FALSE(accept_from(listener)) << "nobody has come yet";
  const auto client = connect_to(path("socket"));
  ASSERT_TRUE(client);
  const auto server = accept_from(listener);
  ASSERT_TRUE(server);
  EXPECT_FALSE(accept_from(listener)) << "only one has come";
  for (const FileDescriptor* end : {&listener, &*client, &*server})
    EXPECT_TRUE(is_private_and_non_blocking(*end));

  EXPECT_EQ(send_message(*client, message_of(1, pattern(10)), Deadline(long_enough)),
            SendResult::sent);
  MessageReader reader;
  const auto message = receive(*server, reader);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->payload, pattern(10));
}

TEST_F(Listening, SeveralMayWaitToBeAccepted) {
  const FileDescriptor listener = listen_at(path("socket"));
  std::vector<FileDescriptor> clients;
  for (int i = 0; i < 64; ++i) {
    auto client = connect_to(path("socket"));
    ASSERT_TRUE(client) << i;
    clients.push_back(std::move(*client));
  }
  int accepted = 0;
  while (accept_from(listener)) ++accepted;
  EXPECT_EQ(accepted, 64);
}

TEST_F(Listening, NobodyThereIsNoError) {
  EXPECT_FALSE(connect_to(path("missing")));
  {
    const FileDescriptor listener = listen_at(path("left behind"));
  }
  EXPECT_FALSE(connect_to(path("left behind"))) << "the file is there, the listener is not";
}

TEST_F(Listening, ConnectToWhatIsNoSocketIsRefused) {
  const FileDescriptor file(::open(path("file").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  EXPECT_FALSE(connect_to(path("file")));
  const Error error = expect_error(Errc::system, [&] { connect_to(path("file") + "/below"); });
  EXPECT_NE(std::string(error.what()).find(path("file")), std::string::npos);
}

TEST_F(Listening, APathInUseIsASystemError) {
  const FileDescriptor listener = listen_at(path("socket"));
  const Error error = expect_error(Errc::system, [&] { listen_at(path("socket")); });
  EXPECT_NE(std::string(error.what()).find(path("socket")), std::string::npos);
  EXPECT_TRUE(connect_to(path("socket"))) << "the first listener is unharmed";
}

TEST_F(Listening, ADirectoryThatIsNotThereIsASystemError) {
  expect_error(Errc::system, [&] { listen_at(path("no/such/socket")); });
}

TEST_F(Listening, PathsEndAtTheLimit) {
  const std::string longest =
      path(std::string(max_socket_path - directory_.path().size() - 1, 'x'));
  ASSERT_EQ(longest.size(), max_socket_path);
  const FileDescriptor listener = listen_at(longest);
  EXPECT_TRUE(connect_to(longest));
  for (const auto& call : {std::function<void()>([&] { listen_at(longest + "x"); }),
                           std::function<void()>([&] { connect_to(longest + "x"); })}) {
    const Error error = expect_error(Errc::invalid_argument, call);
    const std::string message = error.what();
    for (const std::string& part : {longest, std::string("108"), std::string("107")})
      EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST_F(Listening, PeersAreIdentified) {
  const FileDescriptor listener = listen_at(path("socket"));
  const auto client = connect_to(path("socket"));
  const auto server = accept_from(listener);
  ASSERT_TRUE(client && server);
  for (const FileDescriptor* end : {&*client, &*server}) {
    const PeerIdentity peer = identify_peer(*end);
    EXPECT_EQ(peer.user, ::getuid());
    EXPECT_EQ(peer.process, ::getpid());
  }
}

TEST(Sockets, OnlySocketsHavePeers) {
  const FileDescriptor pipe = pipe_with("x");
  expect_error(Errc::system, [&] { identify_peer(pipe); });
}

TEST(Sockets, PairsArePrivateAndNonBlocking) {
  const auto [left, right] = make_socket_pair();
  EXPECT_TRUE(is_private_and_non_blocking(left));
  EXPECT_TRUE(is_private_and_non_blocking(right));
}

TEST(Sockets, LargeMessagesGoThroughSmallBuffers) {
  const auto [left, right] = small_socket_pair();
  constexpr int count = 3;
  std::vector<Message> received;
  std::thread receiver([&received, &right] {
    MessageReader reader;
    for (int i = 0; i < count; ++i)
      if (auto message = receive(right, reader)) received.push_back(std::move(*message));
  });
  for (int i = 0; i < count; ++i)
    EXPECT_EQ(send_message(left,
                           message_of(static_cast<std::uint64_t>(i),
                                      pattern(max_payload_bytes - static_cast<std::size_t>(i))),
                           Deadline(long_enough)),
              SendResult::sent);
  receiver.join();
  ASSERT_EQ(received.size(), static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(received[i].sequence, i);
    EXPECT_EQ(received[i].payload, pattern(max_payload_bytes - i));
  }
}

TEST(Sockets, DescriptorsComeWithTheirMessages) {
  const std::size_t before = test::open_descriptors();
  {
    const auto [left, right] = make_socket_pair();
    for (std::uint64_t i = 0; i < 20; ++i) {
      Message message = message_of(i, pattern(i * 100));
      if (i % 3 != 0) message.descriptor = pipe_with("pipe " + std::to_string(i));
      EXPECT_EQ(send_message(left, message, Deadline(long_enough)), SendResult::sent);
    }
    MessageReader reader;
    for (std::uint64_t i = 0; i < 20; ++i) {
      const auto message = receive(right, reader);
      ASSERT_TRUE(message);
      EXPECT_EQ(message->sequence, i);
      EXPECT_EQ(message->payload, pattern(i * 100));
      ASSERT_EQ(static_cast<bool>(message->descriptor), i % 3 != 0);
      if (!message->descriptor) continue;
      EXPECT_EQ(read_text(message->descriptor), "pipe " + std::to_string(i));
      EXPECT_NE(::fcntl(message->descriptor.get(), F_GETFD) & FD_CLOEXEC, 0);
    }
  }
  EXPECT_EQ(test::open_descriptors(), before);
}

TEST(Sockets, ALargeMessageCarriesItsDescriptorOnce) {
  const auto [left, right] = small_socket_pair();
  std::thread sender([&left] {
    Message message = message_of(1, pattern(200'000));
    message.descriptor = pipe_with("first");
    EXPECT_EQ(send_message(left, message, Deadline(long_enough)), SendResult::sent);
    message = message_of(2, {});
    message.descriptor = pipe_with("second");
    EXPECT_EQ(send_message(left, message, Deadline(long_enough)), SendResult::sent);
  });
  MessageReader reader;
  for (const char* text : {"first", "second"}) {
    const auto message = receive(right, reader);
    EXPECT_EQ(message ? read_text(message->descriptor) : "no message", text);
  }
  sender.join();
}

TEST(Sockets, DescriptorsNobodyAskedForDoNotLeak) {
  const std::size_t before = test::open_descriptors();
  {
    const auto [left, right] = make_socket_pair();
    const FileDescriptor descriptor = pipe_with("x");
    MessageReader reader;
    // The kernel takes at most 253 descriptors with one byte; the reader has room for fewer.
    ASSERT_NO_FATAL_FAILURE(send_descriptors(left, std::vector<int>(100, descriptor.get())));
    expect_error(Errc::protocol, [&] { read_available(right, reader); });
    expect_error(Errc::protocol, [&] {
      for (int i = 0; i < 200; ++i) {
        send_descriptors(left, std::vector<int>(8, descriptor.get()));
        read_available(right, reader);
      }
    });
  }
  EXPECT_EQ(test::open_descriptors(), before);
}

TEST(Sockets, ADescriptorThatFindsNoRoomIsMissedWithAdvice) {
  if (test::under_address_sanitizer) GTEST_SKIP() << test::ubsan_needs_descriptors;
  const auto [left, right] = make_socket_pair();
  Message message = message_of(1, {});
  message.descriptor = pipe_with("x");
  EXPECT_EQ(send_message(left, message, Deadline(long_enough)), SendResult::sent);
  const Error error = expect_error(Errc::system, [&right] {
    const test::DescriptorLimit none_more(0);
    MessageReader reader;
    read_available(right, reader);
  });
  const std::string text = error.what();
  EXPECT_NE(text.find("a descriptor that a peer sent was lost: Too many open files (this process"),
            std::string::npos)
      << text;
}

TEST(Sockets, AFullSocketTimesOut) {
  const auto [left, right] = small_socket_pair();
  EXPECT_EQ(
      send_message(left, message_of(1, pattern(max_payload_bytes)), Deadline(milliseconds(20))),
      SendResult::torn);
  EXPECT_EQ(send_message(left, message_of(2, {}), Deadline(milliseconds(0))),
            SendResult::timed_out);
}

TEST(Sockets, RoomThatIsThereIsUsedWithoutTime) {
  const auto [left, right] = make_socket_pair();
  EXPECT_EQ(send_message(left, message_of(1, pattern(100)), Deadline(milliseconds(0))),
            SendResult::sent);
  MessageReader reader;
  const auto message = receive(right, reader);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->payload, pattern(100));
}

TEST(Sockets, APeerThatIsGoneTakesNothing) {
  auto [left, right] = make_socket_pair();
  right.reset();
  EXPECT_EQ(send_message(left, message_of(1, {}), Deadline(long_enough)), SendResult::peer_gone);
  MessageReader reader;
  EXPECT_EQ(read_available(left, reader), ReadResult::closed);
}

TEST(Sockets, APeerThatGoesEndsASendInProgress) {
  auto [left, right] = small_socket_pair();
  SendResult result = SendResult::sent;
  std::thread sender([&result, &left] {
    result = send_message(left, message_of(1, pattern(max_payload_bytes)), Deadline(long_enough));
  });
  ASSERT_NO_FATAL_FAILURE(wait_readable(right));
  right.reset();
  sender.join();
  EXPECT_EQ(result, SendResult::peer_gone);
}

TEST(Sockets, WhatAPeerSentBeforeItWentIsStillRead) {
  auto [left, right] = make_socket_pair();
  for (std::uint64_t i = 0; i < 5; ++i)
    EXPECT_EQ(send_message(left, message_of(i, pattern(1000)), Deadline(long_enough)),
              SendResult::sent);
  left.reset();
  MessageReader reader;
  EXPECT_EQ(read_available(right, reader), ReadResult::closed);
  for (std::uint64_t i = 0; i < 5; ++i) {
    const auto message = reader.next();
    ASSERT_TRUE(message);
    EXPECT_EQ(message->sequence, i);
  }
  EXPECT_FALSE(reader.next());
}

TEST(Sockets, ReadingWhatHasNotComeDoesNotWait) {
  const auto [left, right] = make_socket_pair();
  MessageReader reader;
  EXPECT_EQ(read_available(right, reader), ReadResult::open);
  EXPECT_FALSE(reader.next());
}

TEST(Sockets, AnotherLanguageIsAProtocolError) {
  const auto [left, right] = make_socket_pair();
  const std::string text = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  ASSERT_EQ(::write(left.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  MessageReader reader;
  EXPECT_EQ(read_available(right, reader), ReadResult::open);
  expect_error(Errc::protocol, [&] { reader.next(); });
}

}  // namespace
}  // namespace iridium
