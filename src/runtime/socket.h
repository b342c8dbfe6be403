// Unix sockets: the few calls the control plane needs. All descriptors are non-blocking and closed
// on exec.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "base/deadline.h"
#include "base/file_descriptor.h"
#include "runtime/control_message.h"

namespace iridium {

/// The longest path a Unix socket can have.
inline constexpr std::size_t max_socket_path = 107;

// What makes a descriptor throws `Shortage` when none is left.

/// A listening socket at `path`; throws `system`.
FileDescriptor listen_at(const std::string& path);
/// A connection to `path`; none when nobody listens there at the moment.
std::optional<FileDescriptor> connect_to(const std::string& path);
/// The next connection of a listening socket; none when none is waiting.
std::optional<FileDescriptor> accept_from(const FileDescriptor& listener);
/// Two connected sockets.
std::pair<FileDescriptor, FileDescriptor> make_socket_pair();

struct PeerIdentity {
  uid_t user;
  pid_t process;
};
PeerIdentity identify_peer(const FileDescriptor& connection);

enum class SendResult {
  sent,
  peer_gone,
  timed_out,  ///< nothing was sent
  torn,       ///< a part was sent: the connection is of no further use
};
/// Sends the whole message and its descriptor.
SendResult send_message(const FileDescriptor& connection, const Message& message,
                        const Deadline& deadline);

enum class ReadResult { open, closed };
/// Feeds all that has arrived into `reader`, without waiting. Throws `protocol` as the reader does.
ReadResult read_available(const FileDescriptor& connection, MessageReader& reader);

}  // namespace iridium
