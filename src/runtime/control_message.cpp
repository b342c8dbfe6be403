#include "runtime/control_message.h"

#include <fmt/format.h>

#include <utility>

namespace iridium {
namespace {

constexpr std::uint32_t magic = 0x4d435249;  // "IRCM"
constexpr std::size_t header_bytes = 24;
constexpr std::uint8_t carries_descriptor = 1;
constexpr std::size_t max_waiting_descriptors = 128;

struct Header {
  MessageType type;
  bool has_descriptor;
  std::uint32_t channel;
  std::uint32_t payload_bytes;
  std::uint64_t sequence;
};

Header decode_header(std::span<const std::byte> bytes) {
  PayloadReader reader(bytes);
  if (const auto seen = reader.number<std::uint32_t>(); seen != magic)
    throw Error(Errc::protocol,
                fmt::format("a control message starts with {:#010x}, not {:#010x}", seen, magic));
  const auto type = reader.number<std::uint8_t>();
  const auto flags = reader.number<std::uint8_t>();
  const auto reserved = reader.number<std::uint16_t>();
  const auto channel = reader.number<std::uint32_t>();
  const auto payload_bytes = reader.number<std::uint32_t>();
  const auto sequence = reader.number<std::uint64_t>();
  if (type < static_cast<std::uint8_t>(MessageType::hello) ||
      type > static_cast<std::uint8_t>(MessageType::goodbye))
    throw Error(Errc::protocol, fmt::format("a control message has the unknown type {}", type));
  if ((flags & ~carries_descriptor) != 0 || reserved != 0)
    throw Error(Errc::protocol,
                fmt::format("a control message has the unknown flags {:#x}", flags));
  if (payload_bytes > max_payload_bytes)
    throw Error(Errc::protocol, fmt::format("a control message of {} bytes is over the limit of {}",
                                            payload_bytes, max_payload_bytes));
  return {static_cast<MessageType>(type), flags != 0, channel, payload_bytes, sequence};
}

}  // namespace

Fault to_fault(const std::exception& error, int rank) {
  Fault fault = {Errc::system, error.what(), {}};
  if (const auto* known = dynamic_cast<const Error*>(&error)) {
    fault.code = known->code();
    fault.ranks = known->ranks();
    // `Error` puts the code's name before the message, and will again.
    const std::string prefix = fmt::format("{}: ", name(fault.code));
    if (fault.message.starts_with(prefix)) fault.message.erase(0, prefix.size());
  }
  if (fault.ranks.empty()) {
    fault.ranks = {rank};
    fault.message = fmt::format("rank {} failed: {}", rank, fault.message);
  }
  return fault;
}

Bytes encode(const Fault& fault) {
  PayloadWriter writer;
  writer.number(static_cast<std::uint32_t>(fault.code)).text(fault.message);
  writer.number(static_cast<std::uint32_t>(fault.ranks.size()));
  for (const int rank : fault.ranks) writer.number(static_cast<std::int32_t>(rank));
  return writer.take();
}

Fault decode_fault(std::span<const std::byte> payload) {
  PayloadReader reader(payload);
  Fault fault;
  const auto code = reader.number<std::uint32_t>();
  if (code > static_cast<std::uint32_t>(Errc::system))
    throw Error(Errc::protocol, fmt::format("a fault has the unknown code {}", code));
  fault.code = static_cast<Errc>(code);
  fault.message = reader.text();
  const auto count = reader.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count; ++i) fault.ranks.push_back(reader.number<std::int32_t>());
  return fault;
}

void check_payload(std::span<const std::byte> payload) {
  if (payload.size() > max_payload_bytes)
    throw Error(Errc::invalid_argument,
                fmt::format("a control message of {} bytes is over the limit of {}", payload.size(),
                            max_payload_bytes));
}

Bytes encode(const Message& message) {
  check_payload(message.payload);
  PayloadWriter writer;
  writer.number(magic)
      .number(static_cast<std::uint8_t>(message.type))
      .number(static_cast<std::uint8_t>(message.descriptor ? carries_descriptor : 0))
      .number(std::uint16_t{0})
      .number(message.channel)
      .number(static_cast<std::uint32_t>(message.payload.size()))
      .number(message.sequence)
      .bytes(message.payload);
  return writer.take();
}

void MessageReader::feed(std::span<const std::byte> bytes) {
  if (used_ > 0) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ = 0;
  }
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void MessageReader::feed(FileDescriptor descriptor) {
  if (descriptors_.size() == max_waiting_descriptors)
    throw Error(Errc::protocol, "more descriptors than control messages that carry one");
  descriptors_.push_back(std::move(descriptor));
}

std::optional<Message> MessageReader::next() {
  const auto bytes = std::span(buffer_).subspan(used_);
  if (bytes.size() < header_bytes) return std::nullopt;
  const Header header = decode_header(bytes.first(header_bytes));
  if (bytes.size() < header_bytes + header.payload_bytes) return std::nullopt;

  Message message;
  message.type = header.type;
  message.channel = header.channel;
  message.sequence = header.sequence;
  const auto payload = bytes.subspan(header_bytes, header.payload_bytes);
  message.payload.assign(payload.begin(), payload.end());
  if (header.has_descriptor) {
    if (descriptors_.empty())
      throw Error(Errc::protocol, "a control message came without its descriptor");
    message.descriptor = std::move(descriptors_.front());
    descriptors_.pop_front();
  }
  used_ += header_bytes + header.payload_bytes;
  return message;
}

}  // namespace iridium
