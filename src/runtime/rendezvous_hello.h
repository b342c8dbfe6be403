// What a rank says when it comes to the rendezvous.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/control_message.h"

namespace iridium {

/// Raised when the control messages change.
inline constexpr std::uint32_t protocol_version = 2;

struct Hello {
  std::uint32_t protocol = protocol_version;
  int rank = 0;
  int size = 0;
  std::string token;
  std::string version;
};

Message encode(const Hello& hello);
/// Throws `protocol` on a message that is no hello.
Hello decode_hello(const Message& message);

}  // namespace iridium
