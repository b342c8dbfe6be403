// The messages of the control plane, and how they are cut out of a stream of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "iridium/errors.h"
#include "runtime/payload.h"

namespace iridium {

enum class MessageType : std::uint8_t {
  hello = 1,  ///< rank → leader: who I am
  waiting,    ///< leader → rank: you are in; these ranks are still missing
              ///< rank → leader: who is missing?
  refused,    ///< leader → rank: the rendezvous failed, for this reason
  welcome,    ///< leader → rank: everyone is here; the context's id
  link,       ///< leader → rank: your connection to another rank, as a descriptor
  call,       ///< rank → rank: my part of a host call on a channel
  fault,      ///< rank → rank: this channel failed, for this reason
  leaving,    ///< rank → rank: I destroyed my context, and work that I queued still runs
  goodbye,    ///< rank → rank: I destroyed my context, and nothing that I queued still runs
};

struct Message {
  MessageType type = MessageType::call;
  std::uint32_t channel = 0;
  std::uint64_t sequence = 0;
  Bytes payload;
  FileDescriptor descriptor;
};

/// Larger payloads are refused on both sides.
inline constexpr std::size_t max_payload_bytes = std::size_t{1} << 20;
/// Throws `invalid_argument` for a payload over the limit.
void check_payload(std::span<const std::byte> payload);

/// Why something failed: what an `Error` says, in a form that travels.
struct Fault {
  Errc code = Errc::system;
  std::string message;
  std::vector<int> ranks;

  Error error() const { return {code, message, ranks}; }
};

/// What `error` says, to be said again elsewhere. An error that names no rank names `rank`, which
/// had it.
Fault to_fault(const std::exception& error, int rank);

Bytes encode(const Fault& fault);
/// Throws `protocol` on bytes that are no fault.
Fault decode_fault(std::span<const std::byte> payload);

/// The bytes of `message`, header first; its descriptor travels beside them.
Bytes encode(const Message& message);

/// Cuts messages out of whatever pieces the bytes arrive in. Throws `protocol` on bytes that are no
/// message, and is of no further use after that.
class MessageReader {
 public:
  void feed(std::span<const std::byte> bytes);
  void feed(FileDescriptor descriptor);
  /// The next whole message, if there is one.
  std::optional<Message> next();

 private:
  Bytes buffer_;
  std::size_t used_ = 0;  ///< bytes at the front of `buffer_` already handed out
  std::deque<FileDescriptor> descriptors_;
};

}  // namespace iridium
