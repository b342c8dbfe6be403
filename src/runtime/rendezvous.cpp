#include "runtime/rendezvous.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "base/log.h"
#include "base/text.h"
#include "iridium/version.h"
#include "runtime/rendezvous_hello.h"
#include "runtime/rendezvous_leader.h"
#include "runtime/runtime_directory.h"
#include "runtime/shortage.h"
#include "runtime/socket.h"

namespace iridium {
namespace {

/// So long before its timeout a rank asks the leader who is missing: a leader that does not answer
/// is missing itself.
constexpr std::chrono::milliseconds longest_answer{2000};

/// A rank other than 0. One attempt is one connection; a leader that goes before its first word
/// belonged to an earlier context, and the next one is waited for.
class Follower {
 public:
  Follower(const Job& job, std::string path, const WaitLimit& limit,
           const std::function<void(std::string_view)>& on_step)
      : job_(job), path_(std::move(path)), wait_(job.rank, limit), on_step_(on_step) {}

  Rendezvous run() {
    auto pause = std::chrono::microseconds(100);
    while (!wait_.deadline().expired()) {
      if (auto connection =
              outlast_shortage(job_.rank, wait_.deadline(), [this] { return connect_to(path_); })) {
        check_owner(*connection);
        if (auto result = attend(std::move(*connection))) return std::move(*result);
      }
      if (wait_.notice_is_due()) tell();
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::microseconds(5000));
    }
    throw Error(
        Errc::timeout,
        fmt::format("rank 0 did not come within {} at step rendezvous: nobody leads at {}, "
                    "as rank {} saw it{}",
                    format_seconds(wait_.limit().timeout), path_, job_.rank, advice(wait_.limit())),
        {0});
  }

 private:
  void check_owner(const FileDescriptor& connection) const {
    const PeerIdentity leader = identify_peer(connection);
    if (leader.user != ::geteuid())
      throw Error(Errc::permission, fmt::format("the socket {} belongs to user {}, not to user {}",
                                                path_, leader.user, ::geteuid()));
  }

  /// None when the leader went without a word. What fails here, the leader is told, so that all
  /// ranks fail with the same reason.
  std::optional<Rendezvous> attend(FileDescriptor connection) {
    Rendezvous result;
    result.links.resize(static_cast<std::size_t>(job_.size));
    result.links[0].socket = std::move(connection);
    try {
      if (receive_links(result)) return result;
      return std::nullopt;
    } catch (const std::exception& error) {
      Message message;
      message.type = MessageType::fault;
      message.payload = encode(to_fault(error, job_.rank));
      send_message(result.links[0].socket, message, Deadline(std::chrono::milliseconds(50)));
      throw;
    }
  }

  /// False when the leader went without a word.
  bool receive_links(Rendezvous& result) {
    const FileDescriptor& leader = result.links[0].socket;
    MessageReader& reader = result.links[0].reader;
    const Hello hello = {protocol_version, job_.rank, job_.size, job_.token, version()};
    if (send_message(leader, encode(hello), wait_.deadline()) != SendResult::sent) return false;

    heard_ = false;
    asked_ = false;
    const Deadline question(std::chrono::milliseconds(wait_.deadline().left_ms()) -
                            time_to_answer());
    int links_left = job_.size - 2;
    const auto complete = [&] { return result.context_id != 0 && links_left == 0; };
    while (!complete()) {
      pollfd event = {leader.get(), POLLIN, 0};
      const int until_question = asked_ ? wait_.next_look_ms() : question.left_ms();
      if (::poll(&event, 1, std::min(wait_.next_look_ms(), until_question)) == 0) {
        if (wait_.notice_is_due()) tell();
        if (wait_.deadline().expired()) give_up();
        if (!asked_ && question.expired()) ask(leader);
      }
      const ReadResult state = read_available(leader, reader);
      while (!complete()) {
        auto message = reader.next();
        if (!message) break;
        heard_ = true;
        if (take(std::move(*message), result)) --links_left;
      }
      if (complete() || state == ReadResult::open) continue;
      if (!heard_) return false;
      throw Error(Errc::peer_lost,
                  fmt::format("lost rank 0 at step {}: its connection closed", step_), {0});
    }
    return true;
  }

  /// True when the message brought a link.
  bool take(Message message, Rendezvous& result) {
    PayloadReader reader(message.payload);
    switch (message.type) {
      case MessageType::waiting: {
        missing_.clear();
        answered_ = true;
        const auto count = reader.number<std::uint32_t>();
        for (std::uint32_t i = 0; i < count; ++i) missing_.push_back(reader.number<std::int32_t>());
        return false;
      }
      case MessageType::refused:
        throw decode_fault(message.payload).error();
      case MessageType::welcome:
        result.context_id = reader.number<std::uint64_t>();
        step_ = "links";
        on_step_(step_);
        return false;
      case MessageType::link: {
        const auto peer = reader.number<std::uint32_t>();
        if (peer == 0 || peer >= result.links.size() || !message.descriptor ||
            result.links[peer].socket)
          throw Error(Errc::protocol,
                      fmt::format("rank 0 sent a link to rank {} that makes no sense", peer));
        result.links[peer].socket = std::move(message.descriptor);
        return true;
      }
      default:
        throw Error(Errc::protocol, fmt::format("message type {} has no place in a rendezvous",
                                                static_cast<int>(message.type)));
    }
  }

  std::vector<int> absent() const { return missing_.empty() ? std::vector{0} : missing_; }

  void tell() { wait_.tell(fmt::format("{} at step {}", list_ranks(absent()), step_)); }

  std::chrono::milliseconds time_to_answer() const {
    return std::min(wait_.limit().timeout / 2, longest_answer);
  }

  /// What ranks were missing when the leader was last heard of is no news when time is up.
  void ask(const FileDescriptor& leader) {
    asked_ = true;
    answered_ = false;
    Message question;
    question.type = MessageType::waiting;
    // Where it cannot be sent there is no answer either.
    send_message(leader, question, Deadline(std::chrono::milliseconds(0)));
  }

  [[noreturn]] void give_up() const {
    const std::string where = fmt::format("within {} at step {}, as rank {} saw it",
                                          format_seconds(wait_.limit().timeout), step_, job_.rank);
    if (!answered_ || missing_.empty())
      throw Error(Errc::timeout,
                  fmt::format("rank 0 did not lead the ranks together {}: nothing came from it in "
                              "the last {}{}",
                              where, format_seconds(time_to_answer()), advice(wait_.limit())),
                  {0});
    throw Error(
        Errc::timeout,
        fmt::format("{} did not come {}{}", list_ranks(missing_), where, advice(wait_.limit())),
        missing_);
  }

  const Job& job_;
  std::string path_;
  HostWait wait_;
  const std::function<void(std::string_view)>& on_step_;
  bool heard_ = false;
  bool asked_ = false;     ///< the leader, who is missing
  bool answered_ = false;  ///< it has said so since
  std::vector<int> missing_;
  std::string_view step_ = "rendezvous";
};

}  // namespace

Message encode(const Hello& hello) {
  Message message;
  message.type = MessageType::hello;
  message.payload = PayloadWriter()
                        .number(hello.protocol)
                        .number(static_cast<std::int32_t>(hello.rank))
                        .number(static_cast<std::int32_t>(hello.size))
                        .text(hello.token)
                        .text(hello.version)
                        .take();
  return message;
}

Hello decode_hello(const Message& message) {
  if (message.type != MessageType::hello)
    throw Error(Errc::protocol, fmt::format("expected a hello, got message type {}",
                                            static_cast<int>(message.type)));
  PayloadReader reader(message.payload);
  Hello hello;
  hello.protocol = reader.number<std::uint32_t>();
  hello.rank = reader.number<std::int32_t>();
  hello.size = reader.number<std::int32_t>();
  hello.token = reader.text();
  hello.version = reader.text();
  return hello;
}

std::string rendezvous_path(const Job& job, const std::string& context_name) {
  return fmt::format("{}/{:016x}.sock", runtime_directory(),
                     hash_text(job.rendezvous + '\n' + context_name));
}

Rendezvous meet(const Job& job, const std::string& context_name, const WaitLimit& limit,
                const std::function<void(std::string_view)>& on_step) {
  const std::string path = rendezvous_path(job, context_name);
  log(LogLevel::debug, job.rank, "rendezvous of {} ranks at {}", job.size, path);
  on_step("rendezvous");
  return job.rank == 0 ? lead(job, path, limit, on_step)
                       : Follower(job, path, limit, on_step).run();
}

}  // namespace iridium
