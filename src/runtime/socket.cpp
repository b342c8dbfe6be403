#include "runtime/socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "base/system_error.h"

namespace iridium {
namespace {

constexpr int socket_type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
constexpr std::size_t max_descriptors_per_read = 8;
constexpr int max_reads_at_once = 64;  // so that one peer that floods cannot starve the others

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() > max_socket_path)
    throw Error(Errc::invalid_argument,
                fmt::format("the socket path {} has {} characters; the limit is {}", path,
                            path.size(), max_socket_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

FileDescriptor open_socket() {
  FileDescriptor descriptor(::socket(AF_UNIX, socket_type, 0));
  if (!descriptor) throw_system_error("cannot open a Unix socket");
  return descriptor;
}

/// Room for the descriptors of one message, aligned as the kernel wants it.
template <std::size_t Count>
union ControlBuffer {
  cmsghdr header;
  std::array<char, CMSG_SPACE(Count * sizeof(int))> bytes;
};

/// Sends what one call takes of `bytes`; `descriptor` goes with the first byte.
ssize_t send_piece(int connection, std::span<const std::byte> bytes, int descriptor) {
  iovec piece = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr header = {};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  ControlBuffer<1> control = {};
  if (descriptor >= 0) {
    header.msg_control = control.bytes.data();
    header.msg_controllen = control.bytes.size();
    cmsghdr* entry = CMSG_FIRSTHDR(&header);
    entry->cmsg_level = SOL_SOCKET;
    entry->cmsg_type = SCM_RIGHTS;
    entry->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(entry), &descriptor, sizeof(int));
  }
  return ::sendmsg(connection, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/// Throws when descriptors were lost on the way.
void take_descriptors(msghdr& header, MessageReader& reader) {
  std::size_t received = 0;
  for (cmsghdr* entry = CMSG_FIRSTHDR(&header); entry != nullptr;
       entry = CMSG_NXTHDR(&header, entry)) {
    if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::vector<FileDescriptor> descriptors;
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(entry) + i * sizeof(int), sizeof(int));
      descriptors.emplace_back(number);
    }
    received += count;
    for (FileDescriptor& descriptor : descriptors) reader.feed(std::move(descriptor));
  }
  if ((header.msg_flags & MSG_CTRUNC) == 0) return;
  if (received >= max_descriptors_per_read)
    throw Error(Errc::protocol, "more descriptors came at once than any message carries");
  throw Error(Errc::system, "a descriptor that a peer sent was lost: " + system_reason(EMFILE));
}

}  // namespace

FileDescriptor listen_at(const std::string& path) {
  const sockaddr_un address = address_of(path);
  FileDescriptor listener = open_socket();
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.get(), 128) != 0)
    throw system_error("cannot listen at " + path);
  return listener;
}

std::optional<FileDescriptor> connect_to(const std::string& path) {
  const sockaddr_un address = address_of(path);
  FileDescriptor connection = open_socket();
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return connection;
  if (errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR)
    return std::nullopt;
  if (errno == EACCES || errno == EPERM)
    throw Error(Errc::permission,
                fmt::format("may not connect to {}: {}", path, std::strerror(errno)));
  throw system_error("cannot connect to " + path);
}

std::optional<FileDescriptor> accept_from(const FileDescriptor& listener) {
  FileDescriptor connection(
      ::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (connection) return connection;
  if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return std::nullopt;
  throw_system_error("accept");
}

std::pair<FileDescriptor, FileDescriptor> make_socket_pair() {
  std::array<int, 2> ends = {};
  if (::socketpair(AF_UNIX, socket_type, 0, ends.data()) != 0) throw_system_error("socketpair");
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

PeerIdentity identify_peer(const FileDescriptor& connection) {
  ucred credentials = {};
  socklen_t size = sizeof credentials;
  if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
    throw system_error("SO_PEERCRED");
  return {credentials.uid, credentials.pid};
}

SendResult send_message(const FileDescriptor& connection, const Message& message,
                        const Deadline& deadline) {
  const Bytes bytes = encode(message);
  std::span<const std::byte> left = bytes;
  int descriptor = message.descriptor.get();
  const auto out_of_time = [&] {
    return left.size() == bytes.size() ? SendResult::timed_out : SendResult::torn;
  };
  while (!left.empty()) {
    const ssize_t sent = send_piece(connection.get(), left, descriptor);
    if (sent > 0) {
      left = left.subspan(static_cast<std::size_t>(sent));
      descriptor = -1;
    } else if (errno == EAGAIN) {
      pollfd room = {connection.get(), POLLOUT, 0};
      if (::poll(&room, 1, deadline.left_ms()) == 0) return out_of_time();
    } else if (errno == ETOOMANYREFS) {
      // The kernel bounds a user's descriptors in flight; receivers are taking them off.
      if (deadline.expired()) return out_of_time();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return SendResult::peer_gone;
    } else if (errno != EINTR) {
      throw system_error("cannot send on a control connection");
    }
  }
  return SendResult::sent;
}

ReadResult read_available(const FileDescriptor& connection, MessageReader& reader) {
  std::array<std::byte, 16384> bytes;
  for (int reads = 0; reads < max_reads_at_once; ++reads) {
    iovec piece = {bytes.data(), bytes.size()};
    ControlBuffer<max_descriptors_per_read> control = {};
    msghdr header = {};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control.bytes.data();
    header.msg_controllen = control.bytes.size();
    const ssize_t count = ::recvmsg(connection.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0 && errno == EAGAIN) return ReadResult::open;
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return ReadResult::closed;
    take_descriptors(header, reader);
    reader.feed(std::span(bytes).first(static_cast<std::size_t>(count)));
  }
  return ReadResult::open;
}

}  // namespace iridium
