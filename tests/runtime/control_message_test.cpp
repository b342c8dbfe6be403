#include "runtime/control_message.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/rendezvous_hello.h"
#include "support/ranks.h"
#include "support/resources.h"

namespace iridium {
namespace {

using test::expect_error;

// Where the fields of a header lie.
constexpr std::size_t type_at = 4;
constexpr std::size_t flags_at = 5;
constexpr std::size_t reserved_at = 6;
constexpr std::size_t payload_bytes_at = 12;

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Message message_of(MessageType type, std::uint32_t channel, std::uint64_t sequence, Bytes payload) {
  Message message;
  message.type = type;
  message.channel = channel;
  message.sequence = sequence;
  message.payload = std::move(payload);
  return message;
}

FileDescriptor some_descriptor() {
  return FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

void expect_equal(const Message& left, const Message& right) {
  EXPECT_EQ(left.type, right.type);
  EXPECT_EQ(left.channel, right.channel);
  EXPECT_EQ(left.sequence, right.sequence);
  EXPECT_EQ(left.payload, right.payload);
  EXPECT_EQ(static_cast<bool>(left.descriptor), static_cast<bool>(right.descriptor));
}

/// One message of every type, with payloads of several sizes.
std::vector<Message> some_messages() {
  std::vector<Message> messages;
  std::size_t size = 0;
  for (int type = static_cast<int>(MessageType::hello);
       type <= static_cast<int>(MessageType::goodbye); ++type) {
    messages.push_back(message_of(static_cast<MessageType>(type),
                                  static_cast<std::uint32_t>(type) * 1000003u,
                                  0x123456789abcdef0u + static_cast<unsigned>(type),
                                  Bytes(size, static_cast<std::byte>(type))));
    size = size * 2 + 1;
  }
  return messages;
}

Bytes stream_of(const std::vector<Message>& messages) {
  Bytes stream;
  for (const Message& message : messages) {
    const Bytes bytes = encode(message);
    stream.insert(stream.end(), bytes.begin(), bytes.end());
  }
  return stream;
}

std::vector<Message> read_all(MessageReader& reader) {
  std::vector<Message> messages;
  while (auto message = reader.next()) messages.push_back(std::move(*message));
  return messages;
}

void expect_equal(const std::vector<Message>& left, const std::vector<Message>& right) {
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) expect_equal(left[i], right[i]);
}

/// The bytes of a message without payload, one of them changed.
Bytes spoiled_at(std::size_t place, int value) {
  Bytes bytes = encode(message_of(MessageType::call, 1, 1, {}));
  bytes[place] = static_cast<std::byte>(value);
  return bytes;
}

Error expect_refused(const Bytes& bytes) {
  MessageReader reader;
  reader.feed(bytes);
  return expect_error(Errc::protocol, [&] { reader.next(); });
}

TEST(ControlMessages, GoThereAndBack) {
  for (const Message& message : some_messages()) {
    MessageReader reader;
    reader.feed(encode(message));
    const auto read = reader.next();
    ASSERT_TRUE(read);
    expect_equal(*read, message);
    EXPECT_FALSE(reader.next());
  }
}

TEST(ControlMessages, MayBeAsLargeAsTheLimit) {
  const Message message =
      message_of(MessageType::call, 0, 1, Bytes(max_payload_bytes, std::byte{7}));
  MessageReader reader;
  reader.feed(encode(message));
  const auto read = reader.next();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->payload, message.payload);
}

TEST(ControlMessages, OverTheLimitAreNotEncoded) {
  const Message message = message_of(MessageType::call, 0, 1, Bytes(max_payload_bytes + 1));
  const Error error = expect_error(Errc::invalid_argument, [&] { encode(message); });
  EXPECT_NE(std::string(error.what()).find("1048577"), std::string::npos);
  EXPECT_NE(std::string(error.what()).find("1048576"), std::string::npos);
}

TEST(ControlMessages, MayBeCutAnywhere) {
  const std::vector<Message> messages = some_messages();
  const Bytes stream = stream_of(messages);
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    MessageReader reader;
    reader.feed(std::span(stream).first(cut));
    std::vector<Message> read = read_all(reader);
    reader.feed(std::span(stream).subspan(cut));
    for (Message& message : read_all(reader)) read.push_back(std::move(message));
    ASSERT_NO_FATAL_FAILURE(expect_equal(read, messages)) << "cut at " << cut;
  }
}

TEST(ControlMessages, MayComeByteByByte) {
  const std::vector<Message> messages = some_messages();
  MessageReader reader;
  std::vector<Message> read;
  for (const std::byte byte : stream_of(messages)) {
    reader.feed(std::span(&byte, 1));
    if (auto message = reader.next()) read.push_back(std::move(*message));
  }
  expect_equal(read, messages);
}

TEST(ControlMessages, MayComeSeveralInOnePiece) {
  const std::vector<Message> messages = some_messages();
  MessageReader reader;
  reader.feed(stream_of(messages));
  expect_equal(read_all(reader), messages);
}

TEST(ControlMessages, CutShortAreNeverHandedOut) {
  const Bytes whole = encode(message_of(MessageType::call, 3, 9, bytes_of("payload")));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    MessageReader reader;
    reader.feed(std::span(whole).first(size));
    EXPECT_FALSE(reader.next()) << size << " of " << whole.size() << " bytes";
    EXPECT_FALSE(reader.next()) << "asked again";
  }
}

TEST(ControlMessages, RefuseAnotherMagic) {
  for (std::size_t place = 0; place < type_at; ++place) expect_refused(spoiled_at(place, 0xee));
}

TEST(ControlMessages, RefuseUnknownTypes) {
  for (const int type : {0, static_cast<int>(MessageType::goodbye) + 1, 11, 255}) {
    const Error error = expect_refused(spoiled_at(type_at, type));
    EXPECT_NE(std::string(error.what()).find(std::to_string(type)), std::string::npos);
  }
}

TEST(ControlMessages, RefuseUnknownFlags) {
  for (const int flags : {2, 3, 4, 128, 255}) expect_refused(spoiled_at(flags_at, flags));
  expect_refused(spoiled_at(reserved_at, 1));
  expect_refused(spoiled_at(reserved_at + 1, 1));
}

TEST(ControlMessages, RefuseAPayloadOverTheLimitBeforeItCame) {
  // The limit is 1 << 20: byte 2 of the number.
  Bytes bytes = spoiled_at(payload_bytes_at + 2, 0x10);
  MessageReader reader;
  reader.feed(bytes);
  EXPECT_FALSE(reader.next()) << "exactly the limit is allowed";
  bytes[payload_bytes_at] = std::byte{1};
  const Error error = expect_refused(bytes);
  EXPECT_NE(std::string(error.what()).find("1048577"), std::string::npos);
  expect_refused(spoiled_at(payload_bytes_at + 3, 0xff));
}

TEST(ControlMessages, BadHeadersAreFoundBehindGoodMessages) {
  Bytes stream = stream_of(some_messages());
  const Bytes bad = spoiled_at(0, 0);
  stream.insert(stream.end(), bad.begin(), bad.end());
  MessageReader reader;
  reader.feed(stream);
  for (std::size_t i = 0; i < some_messages().size(); ++i) EXPECT_TRUE(reader.next());
  expect_error(Errc::protocol, [&] { reader.next(); });
}

TEST(ControlMessageDescriptors, GoToTheMessagesThatCarryOneInOrder) {
  std::vector<Message> messages;
  for (std::uint64_t i = 0; i < 6; ++i) {
    messages.push_back(message_of(MessageType::link, 0, i, bytes_of("x")));
    if (i % 2 == 1) messages.back().descriptor = some_descriptor();
  }
  MessageReader reader;
  std::vector<int> sent;
  for (int i = 0; i < 3; ++i) {
    FileDescriptor descriptor = some_descriptor();
    sent.push_back(descriptor.get());
    reader.feed(std::move(descriptor));
  }
  reader.feed(stream_of(messages));
  std::vector<int> received;
  for (std::uint64_t i = 0; i < 6; ++i) {
    const auto message = reader.next();
    ASSERT_TRUE(message);
    EXPECT_EQ(static_cast<bool>(message->descriptor), i % 2 == 1);
    if (message->descriptor) received.push_back(message->descriptor.get());
  }
  EXPECT_EQ(received, sent);
}

TEST(ControlMessageDescriptors, ThatDidNotComeAreAProtocolError) {
  Message message = message_of(MessageType::link, 0, 0, {});
  message.descriptor = some_descriptor();
  expect_refused(encode(message));
}

TEST(ControlMessageDescriptors, NobodyAskedForAreBoundedAndClosed) {
  const std::size_t before = test::open_descriptors();
  {
    MessageReader reader;
    int accepted = 0;
    const Error error = expect_error(Errc::protocol, [&] {
      for (; accepted < 10'000; ++accepted) reader.feed(some_descriptor());
    });
    EXPECT_GE(accepted, 64);
    EXPECT_LE(accepted, 1024);
  }
  EXPECT_EQ(test::open_descriptors(), before);
}

TEST(Faults, SayWhatTheErrorSaid) {
  const Error error(Errc::peer_lost, "lost rank 3 at barrier", {3});
  const Fault fault = to_fault(error, 1);
  EXPECT_EQ(fault.message, "lost rank 3 at barrier");
  EXPECT_STREQ(fault.error().what(), error.what());
  EXPECT_EQ(fault.error().code(), error.code());
  EXPECT_EQ(fault.error().ranks(), error.ranks());
}

TEST(Faults, OfErrorsThatNameNoRankNameTheOneThatHadThem) {
  const Fault fault = to_fault(Error(Errc::out_of_memory, "no room"), 2);
  EXPECT_EQ(fault.message, "rank 2 failed: no room");
  EXPECT_EQ(fault.ranks, std::vector<int>{2});
  const Fault foreign = to_fault(std::runtime_error("out of ink"), 4);
  EXPECT_EQ(foreign.code, Errc::system);
  EXPECT_EQ(foreign.message, "rank 4 failed: out of ink");
}

TEST(Faults, GoThereAndBack) {
  for (int code = 0; code <= static_cast<int>(Errc::system); ++code) {
    const Fault fault = {static_cast<Errc>(code), "why it failed", {0, 7, -1}};
    const Fault read = decode_fault(encode(fault));
    EXPECT_EQ(read.code, fault.code);
    EXPECT_EQ(read.message, fault.message);
    EXPECT_EQ(read.ranks, fault.ranks);
    EXPECT_EQ(read.error().code(), fault.code);
    EXPECT_EQ(read.error().ranks(), fault.ranks);
    EXPECT_NE(std::string(read.error().what()).find("why it failed"), std::string::npos);
  }
}

TEST(Faults, CutShortAreAProtocolError) {
  const Bytes whole = encode(Fault{Errc::timeout, "late", {1, 2}});
  for (std::size_t size = 0; size < whole.size(); ++size)
    expect_error(Errc::protocol, [&] { decode_fault(std::span(whole).first(size)); });
}

TEST(Faults, OfAnUnknownCodeAreAProtocolError) {
  const auto unknown = static_cast<Errc>(static_cast<int>(Errc::system) + 1);
  expect_error(Errc::protocol, [&] { decode_fault(encode(Fault{unknown, "", {}})); });
}

Hello some_hello() {
  return {.protocol = 12, .rank = 3, .size = 8, .token = "secret", .version = "1.2.3"};
}

TEST(Hellos, GoThereAndBack) {
  const Hello read = decode_hello(encode(some_hello()));
  EXPECT_EQ(read.protocol, 12u);
  EXPECT_EQ(read.rank, 3);
  EXPECT_EQ(read.size, 8);
  EXPECT_EQ(read.token, "secret");
  EXPECT_EQ(read.version, "1.2.3");
  EXPECT_EQ(decode_hello(encode(Hello{})).protocol, protocol_version);
}

TEST(Hellos, AreOfTheirOwnType) {
  Message message = encode(some_hello());
  message.type = MessageType::call;
  expect_error(Errc::protocol, [&] { decode_hello(message); });
}

TEST(Hellos, CutShortAreAProtocolError) {
  const Message whole = encode(some_hello());
  for (std::size_t size = 0; size < whole.payload.size(); ++size) {
    Message cut = message_of(MessageType::hello, 0, 0, whole.payload);
    cut.payload.resize(size);
    expect_error(Errc::protocol, [&] { decode_hello(cut); });
  }
}

/// Bytes that are hardly ever valid, and valid ones with a few changes.
class Fuzz : public testing::TestWithParam<unsigned> {
 protected:
  std::mt19937 random_{GetParam()};

  Bytes random_bytes(std::size_t limit) {
    Bytes bytes(random_() % (limit + 1));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    return bytes;
  }

  Bytes mutated(Bytes bytes) {
    for (std::size_t changes = 1 + random_() % 4; changes > 0 && !bytes.empty(); --changes) {
      const auto place = static_cast<std::ptrdiff_t>(random_() % bytes.size());
      switch (random_() % 4) {
        case 0:
          bytes[static_cast<std::size_t>(place)] = static_cast<std::byte>(random_());
          break;
        case 1:
          bytes[static_cast<std::size_t>(place)] ^= static_cast<std::byte>(1u << (random_() % 8));
          break;
        case 2:
          bytes.erase(bytes.begin() + place);
          break;
        default:
          bytes.insert(bytes.begin() + place, static_cast<std::byte>(random_()));
      }
    }
    return bytes;
  }

  /// Half the time random bytes, half the time `valid` with changes.
  Bytes input(const Bytes& valid) {
    return random_() % 2 == 0 ? random_bytes(2 * valid.size()) : mutated(valid);
  }
};

/// Reads the stream in random pieces. What comes out must encode to what went in; true when the
/// whole stream was read.
bool read_in_pieces(const Bytes& stream, std::mt19937& random) {
  MessageReader reader;
  for (int i = 0; i < 3; ++i) reader.feed(some_descriptor());
  Bytes again;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t piece = std::min<std::size_t>(stream.size() - at, 1 + random() % 64);
    reader.feed(std::span(stream).subspan(at, piece));
    at += piece;
    while (const auto message = reader.next()) {
      const Bytes bytes = encode(*message);
      again.insert(again.end(), bytes.begin(), bytes.end());
    }
  }
  EXPECT_LE(again.size(), stream.size());
  EXPECT_TRUE(std::equal(again.begin(), again.end(), stream.begin()));
  return again.size() == stream.size();
}

TEST_P(Fuzz, StreamsAreMessagesOrAProtocolError) {
  std::vector<Message> messages = some_messages();
  messages.resize(5);
  messages[1].descriptor = some_descriptor();
  messages[3].descriptor = some_descriptor();
  const Bytes valid = stream_of(messages);
  int read = 0;
  int refused = 0;
  for (int i = 0; i < 6000; ++i) {
    try {
      read += read_in_pieces(input(valid), random_) ? 1 : 0;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Errc::protocol) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(read, 0);
  EXPECT_GT(refused, 1000);
}

TEST_P(Fuzz, FaultsAreFaultsOrAProtocolError) {
  const Bytes valid = encode(Fault{Errc::peer_lost, "lost rank 3 at barrier", {3, 4, 5}});
  int decoded = 0;
  for (int i = 0; i < 6000; ++i) {
    const Bytes bytes = input(valid);
    try {
      const Bytes again = encode(decode_fault(bytes));
      ASSERT_LE(again.size(), bytes.size());
      ASSERT_TRUE(std::equal(again.begin(), again.end(), bytes.begin()));
      ++decoded;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Errc::protocol) << error.what();
    }
  }
  EXPECT_GT(decoded, 0);
  EXPECT_LT(decoded, 6000);
}

TEST_P(Fuzz, HellosAreHellosOrAProtocolError) {
  const Bytes valid = encode(some_hello()).payload;
  int decoded = 0;
  for (int i = 0; i < 6000; ++i) {
    const Message message = message_of(MessageType::hello, 0, 0, input(valid));
    try {
      const Bytes again = encode(decode_hello(message)).payload;
      ASSERT_LE(again.size(), message.payload.size());
      ASSERT_TRUE(std::equal(again.begin(), again.end(), message.payload.begin()));
      ++decoded;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Errc::protocol) << error.what();
    }
  }
  EXPECT_GT(decoded, 0);
  EXPECT_LT(decoded, 6000);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Fuzz, testing::Values(1u, 2u, 3u));

}  // namespace
}  // namespace iridium
