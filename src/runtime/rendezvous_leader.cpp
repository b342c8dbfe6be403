#include "runtime/rendezvous_leader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <list>
#include <optional>
#include <string_view>
#include <thread>

#include "base/log.h"
#include "base/random.h"
#include "base/system_error.h"
#include "base/text.h"
#include "iridium/version.h"
#include "runtime/rendezvous_hello.h"
#include "runtime/shortage.h"
#include "runtime/socket.h"

namespace iridium {
namespace {

constexpr std::size_t max_strangers = 256;

FileDescriptor open_lock(const std::string& path, int flags) {
  return FileDescriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
}

struct LockAttempt {
  bool is_held = false;  ///< by another
  bool is_mine = false;  ///< and the file still has its name: the last holder may have removed it
};

LockAttempt try_lock(const FileDescriptor& file, const std::string& path) {
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return {.is_held = true};
  struct stat held = {};
  struct stat named = {};
  return {.is_mine = ::fstat(file.get(), &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
                     held.st_ino == named.st_ino};
}

/// Makes sure that a job has one leader at a time. The file goes with this object.
class LeaderLock {
 public:
  explicit LeaderLock(std::string path) : path_(std::move(path)) {
    // Whoever sweeps the directory holds a lock for a moment.
    const Deadline end_of_sweeps(std::chrono::milliseconds(100));
    while (true) {
      file_ = open_lock(path_, O_CREAT);
      if (!file_) throw_system_error("cannot open " + path_);
      const LockAttempt attempt = try_lock(file_, path_);
      if (attempt.is_mine) return;
      if (attempt.is_held && end_of_sweeps.expired())
        throw Error(Errc::invalid_argument,
                    fmt::format("two ranks have the id 0: another one holds {} and waits for its "
                                "peers (contexts made at the same time need different names)",
                                path_),
                    {0});
      if (attempt.is_held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  ~LeaderLock() { ::unlink(path_.c_str()); }
  LeaderLock(const LeaderLock&) = delete;
  LeaderLock& operator=(const LeaderLock&) = delete;

 private:
  std::string path_;
  FileDescriptor file_;
};

constexpr std::string_view lock_suffix = ".lock";

/// Removes what leaders that were killed have left in the directory.
void sweep(const std::filesystem::path& directory) {
  std::error_code problem;
  std::filesystem::directory_iterator entry(directory, problem);
  for (; !problem && entry != std::filesystem::directory_iterator(); entry.increment(problem)) {
    std::string path = entry->path();
    if (!path.ends_with(lock_suffix)) continue;
    const FileDescriptor file = open_lock(path, 0);
    if (!file || !try_lock(file, path).is_mine) continue;
    const std::string socket = path.substr(0, path.size() - lock_suffix.size());
    ::unlink(socket.c_str());
    ::unlink(path.c_str());
  }
}

/// The listening socket. One found in its place while holding the lock is a dead process's and can
/// go.
class MeetingPoint {
 public:
  explicit MeetingPoint(const std::string& path)
      : lock_(path + std::string(lock_suffix)), path_(path) {
    ::unlink(path_.c_str());
    listener_ = listen_at(path_);
  }
  ~MeetingPoint() { ::unlink(path_.c_str()); }
  MeetingPoint(const MeetingPoint&) = delete;
  MeetingPoint& operator=(const MeetingPoint&) = delete;

  const FileDescriptor& listener() const { return listener_; }

 private:
  LeaderLock lock_;
  std::string path_;
  FileDescriptor listener_;
};

struct Connection {
  FileDescriptor socket;
  MessageReader reader;
  pid_t process = 0;
};

class Leader {
 public:
  Leader(const Job& job, const std::string& path, const WaitLimit& limit)
      : job_(job), wait_(0, limit), members_(static_cast<std::size_t>(job.size)) {
    sweep(std::filesystem::path(path).parent_path());
    outlast_shortage(0, wait_.deadline(), [&] { meeting_point_.emplace(path); });
  }

  void gather() {
    while (!missing().empty()) {
      wait_for_events();
      read_members();
      accept_strangers();
      read_strangers();
      // What came right behind a hello was read with it: no event tells of it.
      read_members();
      if (missing().empty()) break;
      if (wait_.notice_is_due())
        wait_.tell(fmt::format("{} at step rendezvous", list_ranks(missing())));
      if (wait_.deadline().expired())
        fail({Errc::timeout,
              fmt::format("{} did not come within {} at step rendezvous, as rank 0 saw it{}",
                          list_ranks(missing()), format_seconds(wait_.limit().timeout),
                          advice(wait_.limit())),
              missing()});
    }
    // Gone before anyone can be back for the next context.
    strangers_.clear();
    meeting_point_.reset();
  }

  /// Ends the rendezvous for everyone who has come.
  void refuse_all(const Fault& fault) {
    meeting_point_.reset();
    for (const auto& member : members_)
      if (member && member->socket) refuse(*member, fault);
    members_.clear();
    members_.resize(static_cast<std::size_t>(job_.size));
  }

  Rendezvous hand_out_links() {
    Rendezvous result;
    result.context_id = random_id();
    for (int rank = 1; rank < job_.size; ++rank) {
      Message welcome;
      welcome.type = MessageType::welcome;
      welcome.payload = PayloadWriter().number(result.context_id).take();
      send(rank, welcome);
    }
    for (int low = 1; low < job_.size; ++low)
      for (int high = low + 1; high < job_.size; ++high) {
        auto [first, second] = outlast_shortage(0, wait_.deadline(), make_socket_pair);
        send_link(low, high, std::move(first));
        send_link(high, low, std::move(second));
      }
    for (auto& member : members_) {
      ControlLink& link = result.links.emplace_back();
      if (member) link = {std::move(member->socket), std::move(member->reader)};
    }
    return result;
  }

 private:
  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (int rank = 1; rank < job_.size; ++rank)
      if (!members_[static_cast<std::size_t>(rank)]) ranks.push_back(rank);
    return ranks;
  }

  Message encode_missing() const {
    Message waiting;
    waiting.type = MessageType::waiting;
    PayloadWriter writer;
    writer.number(static_cast<std::uint32_t>(missing().size()));
    for (const int rank : missing()) writer.number(static_cast<std::int32_t>(rank));
    waiting.payload = writer.take();
    return waiting;
  }

  void wait_for_events() const {
    std::vector<pollfd> events = {{meeting_point_->listener().get(), POLLIN, 0}};
    for (const auto& member : members_)
      if (member) events.push_back({member->socket.get(), POLLIN, 0});
    for (const Connection& stranger : strangers_)
      events.push_back({stranger.socket.get(), POLLIN, 0});
    ::poll(events.data(), events.size(), wait_.next_look_ms());
  }

  /// A member that goes, or says why it gives up, ends the rendezvous for all.
  void read_members() {
    for (int rank = 1; rank < job_.size; ++rank)
      if (members_[static_cast<std::size_t>(rank)]) read_member(rank, "rendezvous");
  }

  void read_member(int rank, const char* step) {
    auto& member = members_[static_cast<std::size_t>(rank)];
    Fault fault = {Errc::peer_lost,
                   fmt::format("lost rank {} at step {}: its connection closed", rank, step),
                   {rank}};
    try {
      const ReadResult state = read_available(member->socket, member->reader);
      auto message = member->reader.next();
      for (; message && message->type == MessageType::waiting; message = member->reader.next())
        send_message(member->socket, encode_missing(), Deadline(std::chrono::milliseconds(0)));
      if (!message && state == ReadResult::open) return;
      if (message && message->type == MessageType::fault) fault = decode_fault(message->payload);
    } catch (const Error& error) {
      fault = {
          Errc::protocol, fmt::format("rank {} at step {}: {}", rank, step, error.what()), {rank}};
    }
    member.reset();
    fail(fault);
  }

  void accept_strangers() {
    while (auto socket = accept_next()) {
      const PeerIdentity peer = identify_peer(*socket);
      if (peer.user != ::geteuid()) {
        log(LogLevel::warn, 0, "turned away process {} of user {} at the rendezvous", peer.process,
            peer.user);
        continue;
      }
      if (strangers_.size() == max_strangers) strangers_.pop_front();
      strangers_.push_back({std::move(*socket), {}, peer.process});
    }
  }

  /// Where descriptors run out, whoever has waited longest without a word makes room; a rank comes
  /// again.
  std::optional<FileDescriptor> accept_next() {
    return outlast_shortage(0, wait_.deadline(), [this] {
      while (true) {
        try {
          return accept_from(meeting_point_->listener());
        } catch (const Shortage&) {
          if (strangers_.empty()) throw;
          strangers_.pop_front();
        }
      }
    });
  }

  void read_strangers() {
    for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
      const auto current = stranger++;
      const std::optional<Hello> hello = read_hello(*current);
      if (!hello) {
        if (!current->socket) strangers_.erase(current);
        continue;
      }
      // A member that failed and came back said so on its first connection before it opened this
      // one.
      read_members();
      Connection connection = std::move(*current);
      strangers_.erase(current);
      greet(*hello, std::move(connection));
    }
  }

  /// None when there is no whole hello yet. Closes the connection of one that will not say it.
  std::optional<Hello> read_hello(Connection& stranger) const {
    try {
      const ReadResult state = read_available(stranger.socket, stranger.reader);
      if (const auto message = stranger.reader.next()) return decode_hello(*message);
      if (state == ReadResult::closed) stranger.socket.reset();
    } catch (const Error& error) {
      log(LogLevel::warn, 0, "turned away process {} at the rendezvous: {}", stranger.process,
          error.what());
      stranger.socket.reset();
    }
    return std::nullopt;
  }

  void greet(const Hello& hello, Connection connection) {
    if (hello.token != job_.token) {
      log(LogLevel::warn, 0, "turned away process {} at the rendezvous: wrong token",
          connection.process);
      refuse(connection, {Errc::permission,
                          fmt::format("rank 0 turned rank {} away: wrong token", hello.rank),
                          {}});
      return;
    }
    if (const auto fault = object_to(hello, connection)) {
      refuse(connection, *fault);
      fail(*fault);
    }
    members_[static_cast<std::size_t>(hello.rank)] = std::move(connection);
    const Message waiting = encode_missing();
    for (int rank = 1; rank < job_.size; ++rank)
      if (members_[static_cast<std::size_t>(rank)]) send(rank, waiting);
    log(LogLevel::debug, 0, "rank {} (process {}) is here", hello.rank,
        members_[static_cast<std::size_t>(hello.rank)]->process);
  }

  /// What stands against taking this rank in; all ranks fail with it, since the job was started
  /// wrongly.
  std::optional<Fault> object_to(const Hello& hello, const Connection& connection) const {
    if (hello.protocol != protocol_version || hello.version != version())
      return Fault{
          Errc::mismatch,
          fmt::format("rank {} runs Iridium {} (protocol {}), rank 0 runs {} (protocol {})",
                      hello.rank, hello.version, hello.protocol, version(), protocol_version),
          {hello.rank}};
    if (hello.size != job_.size)
      return Fault{Errc::mismatch,
                   fmt::format("rank {} says the job has {} ranks, rank 0 says {}", hello.rank,
                               hello.size, job_.size),
                   {hello.rank}};
    if (hello.rank < 1 || hello.rank >= job_.size)
      return Fault{Errc::invalid_argument,
                   fmt::format("process {} says it is rank {}; expected 1 to {}",
                               connection.process, hello.rank, job_.size - 1),
                   {}};
    if (const auto& other = members_[static_cast<std::size_t>(hello.rank)])
      return Fault{Errc::invalid_argument,
                   fmt::format("two ranks have the id {}: processes {} and {}", hello.rank,
                               other->process, connection.process),
                   {hello.rank}};
    return std::nullopt;
  }

  void refuse(const Connection& connection, const Fault& fault) const {
    Message message;
    message.type = MessageType::refused;
    message.payload = encode(fault);
    send_message(connection.socket, message, Deadline(std::chrono::milliseconds(50)));
  }

  [[noreturn]] void fail(const Fault& fault) {
    refuse_all(fault);
    throw fault.error();
  }

  void send(int rank, const Message& message) {
    const SendResult result =
        send_message(members_[static_cast<std::size_t>(rank)]->socket, message, wait_.deadline());
    if (result == SendResult::sent) return;
    // A member that gave up said why before it went.
    read_member(rank, "links");
    fail({Errc::timeout,
          fmt::format("rank {} does not read its messages at step links{}", rank,
                      advice(wait_.limit())),
          {rank}});
  }

  void send_link(int to, int peer, FileDescriptor end) {
    Message link;
    link.type = MessageType::link;
    link.payload = PayloadWriter().number(static_cast<std::uint32_t>(peer)).take();
    link.descriptor = std::move(end);
    send(to, link);
  }

  const Job& job_;
  HostWait wait_;
  std::vector<std::optional<Connection>> members_;  ///< by rank; entry 0 stays empty
  std::list<Connection> strangers_;                 ///< connected, not greeted yet
  std::optional<MeetingPoint> meeting_point_;
};

}  // namespace

Rendezvous lead(const Job& job, const std::string& path, const WaitLimit& limit,
                const std::function<void(std::string_view)>& on_step) {
  Leader leader(job, path, limit);
  try {
    leader.gather();
    on_step("links");
    return leader.hand_out_links();
  } catch (const std::exception& error) {
    // For what is not the leader's own verdict: of that it has told everyone.
    leader.refuse_all(to_fault(error, 0));
    throw;
  }
}

}  // namespace iridium
