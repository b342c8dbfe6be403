// The control plane against bytes that are not Iridium's.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/rendezvous.h"
#include "runtime/rendezvous_hello.h"
#include "runtime/socket.h"
#include "runtime/unix_control_plane.h"
#include "support/ranks.h"
#include "support/resources.h"

namespace iridium::test {
namespace {

/// Remembers what the control thread says.
class Recorder final : public ControlListener {
 public:
  void on_message(int, Message message) override {
    const std::lock_guard lock(mutex_);
    sequences_.push_back(message.sequence);
    changed_.notify_all();
  }
  void on_gone(int rank, const std::string& reason) override {
    const std::lock_guard lock(mutex_);
    gone_[rank] = reason;
    changed_.notify_all();
  }
  void on_failure(const Error& error) override { ADD_FAILURE() << error.what(); }

  std::string wait_for_gone(int rank) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [&] { return gone_.contains(rank); });
    return gone_.contains(rank) ? gone_[rank] : "still there";
  }
  /// The sequence numbers of `count` messages, or of those that came.
  std::vector<std::uint64_t> wait_for_messages(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [&] { return sequences_.size() >= count; });
    return sequences_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> sequences_;
  std::map<int, std::string> gone_;
};

void write_bytes(const FileDescriptor& socket, std::span<const std::byte> bytes) {
  ASSERT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

Bytes numbered(std::uint64_t sequence) {
  Message message;
  message.sequence = sequence;
  return encode(message);
}

/// Takes all that has come, and says how many bytes that was and whether the end came behind them.
std::pair<std::size_t, bool> drain(const FileDescriptor& socket) {
  std::array<std::byte, 16384> bytes;
  std::size_t total = 0;
  ssize_t count = 0;
  while ((count = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT)) > 0)
    total += static_cast<std::size_t>(count);
  return {total, count == 0};
}

struct Plane {
  Recorder recorder;
  FileDescriptor peer;  ///< the test's end of the link to rank 1
  std::unique_ptr<ControlPlane> plane;

  /// `held` has been read from the link before the plane was made.
  explicit Plane(std::span<const std::byte> held = {}) {
    auto [mine, theirs] = make_socket_pair();
    peer = std::move(theirs);
    std::vector<ControlLink> links(2);
    links[1].socket = std::move(mine);
    links[1].reader.feed(held);
    plane = make_unix_control_plane(0, std::move(links));
    plane->start(recorder);
  }
};

using Sequences = std::vector<std::uint64_t>;

TEST(ControlPlaneTest, DeliversMessagesAndTellsOfTheEnd) {
  Plane plane;
  for (const std::uint64_t i : {1u, 2u, 3u}) write_bytes(plane.peer, numbered(i));
  EXPECT_EQ(plane.recorder.wait_for_messages(3), (Sequences{1, 2, 3}));
  plane.peer.reset();
  EXPECT_EQ(plane.recorder.wait_for_gone(1), "its connection closed");
}

TEST(ControlPlaneTest, DeliversWhatALinkAlreadyHoldsWithoutWaitingForMore) {
  Bytes held = numbered(1);
  const Bytes second = numbered(2);
  const auto half = second.begin() + static_cast<std::ptrdiff_t>(second.size() / 2);
  held.insert(held.end(), second.begin(), half);
  Plane plane(held);
  EXPECT_EQ(plane.recorder.wait_for_messages(1), (Sequences{1}));
  write_bytes(plane.peer, {half, second.end()});
  EXPECT_EQ(plane.recorder.wait_for_messages(2), (Sequences{1, 2}));
}

TEST(ControlPlaneTest, GarbageClosesTheLinkWithAReason) {
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    Plane plane;
    Bytes garbage(24 + random() % 1000);
    for (std::byte& byte : garbage) byte = static_cast<std::byte>(random());
    write_bytes(plane.peer, garbage);
    EXPECT_NE(plane.recorder.wait_for_gone(1).find("protocol: a control message starts with"),
              std::string::npos);
    Message message;
    EXPECT_FALSE(plane.plane->send(1, message, Deadline(std::chrono::seconds(1))))
        << "the link is closed on both sides";
  }
}

TEST(ControlPlaneTest, APeerThatDoesNotReadEndsASendInTime) {
  Plane plane;
  Message message;
  message.payload.resize(max_payload_bytes);
  EXPECT_FALSE(plane.plane->send(1, message, Deadline(std::chrono::milliseconds(50))));
}

TEST(ControlPlaneTest, ATornSendEndsTheLinkOnBothSides) {
  Plane plane;
  Message message;
  message.payload.resize(max_payload_bytes);
  EXPECT_FALSE(plane.plane->send(1, message, Deadline(std::chrono::milliseconds(0))));
  const auto [bytes, at_end] = drain(plane.peer);
  EXPECT_GT(bytes, 0u);
  EXPECT_LT(bytes, max_payload_bytes);
  EXPECT_TRUE(at_end) << "the peer sees that the rest will never come";
  EXPECT_FALSE(plane.plane->send(1, Message{}, Deadline(std::chrono::seconds(30))))
      << "what comes now would be read as the rest";
  EXPECT_EQ(plane.recorder.wait_for_gone(1), "its connection closed");
}

/// Waits for the leader's socket and connects.
FileDescriptor connect_to_leader(const Job& job) {
  const std::string path = rendezvous_path(job, "default");
  for (int i = 0; i < 3000; ++i) {
    if (auto connection = connect_to(path)) return std::move(*connection);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  throw std::runtime_error("no leader came");
}

TEST(RendezvousTest, StrangersDoNotDisturbIt) {
  const ScopedRuntimeDirectory directory;
  const auto jobs = make_local_jobs(2);
  std::thread leader([&] {
    Context context(jobs[0]);
    context.barrier();
  });
  std::mt19937 random(11);
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 30; ++i) {
    strangers.push_back(connect_to_leader(jobs[0]));
    Bytes bytes = encode(encode(Hello{protocol_version, 1, 2, jobs[0].token, "0"}));
    switch (i % 5) {
      case 0:
        break;  // says nothing
      case 1:
        bytes.resize(bytes.size() / 2);
        break;
      case 2:
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
        break;
      case 3:
        bytes = encode(encode(Hello{protocol_version, 1, 2, "guess", "0"}));
        break;
      case 4:
        bytes = encode(Message{});
        break;
      default:
        break;
    }
    if (i % 5 != 0) write_bytes(strangers.back(), bytes);
    if (i % 2 == 0) strangers.back().reset();
  }
  Context context(jobs[1]);
  context.barrier();
  leader.join();
}

TEST(RendezvousTest, AnotherVersionIsRefusedOnBothSides) {
  const ScopedRuntimeDirectory directory;
  const auto jobs = make_local_jobs(2);
  std::thread other([&] {
    const FileDescriptor leader = connect_to_leader(jobs[0]);
    write_bytes(leader, encode(encode(Hello{protocol_version, 1, 2, jobs[0].token, "0.0.9"})));
    MessageReader reader;
    while (read_available(leader, reader) == ReadResult::open) std::this_thread::yield();
    const auto message = reader.next();
    ASSERT_TRUE(message);
    EXPECT_EQ(message->type, MessageType::refused);
    EXPECT_EQ(decode_fault(message->payload).code, Errc::mismatch);
  });
  const Error error = expect_error(Errc::mismatch, [&] { Context context(jobs[0]); });
  EXPECT_NE(std::string(error.what()).find("rank 1 runs Iridium 0.0.9"), std::string::npos)
      << error.what();
  other.join();
}

/// Leads the rendezvous of three as far as to tell rank 1, the only one to come, that rank 2 is
/// missing; says so again if `answers`.
void lead_rank_1_nowhere(const Job& job, bool answers) {
  const FileDescriptor listener = listen_at(rendezvous_path(job, "default"));
  std::optional<FileDescriptor> rank_1;
  while (!(rank_1 = accept_from(listener))) std::this_thread::yield();
  Message waiting;
  waiting.type = MessageType::waiting;
  waiting.payload = PayloadWriter().number(std::uint32_t{1}).number(std::int32_t{2}).take();
  const auto bytes = encode(waiting);
  MessageReader reader;
  bool is_known = false;
  while (read_available(*rank_1, reader) == ReadResult::open) {
    // Rank 1 may have gone since it asked.
    while (reader.next())
      if (answers || !std::exchange(is_known, true))
        static_cast<void>(::send(rank_1->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(RendezvousTest, ALeaderThatIsStoppedIsNamed) {
  const ScopedRuntimeDirectory directory;
  for (const bool answers : {false, true}) {
    const Job job = make_local_jobs(3)[1];
    std::thread leader([&] { lead_rank_1_nowhere(job, answers); });
    const Error error = expect_error(Errc::timeout, [&] {
      Context context(job, {.construction_timeout = std::chrono::seconds(2)});
    });
    EXPECT_EQ(error.ranks(), std::vector<int>{answers ? 2 : 0}) << error.what();
    EXPECT_TRUE(std::string(error.what())
                    .starts_with(answers ? "timeout: rank 2 did not come within 2 s"
                                         : "timeout: rank 0 did not lead"))
        << error.what();
    leader.join();
  }
}

TEST(RendezvousTest, ALeaderWithMoreTimeIsNotTakenForStopped) {
  const ScopedRuntimeDirectory directory;
  const auto jobs = make_local_jobs(3);
  std::thread leader([&] {
    // Rank 1 tells it that its own time is up.
    expect_error(Errc::timeout, [&] {
      Context context(jobs[0], {.construction_timeout = std::chrono::seconds(60)});
    });
  });
  const Error error = expect_error(Errc::timeout, [&] {
    Context context(jobs[1], {.construction_timeout = std::chrono::seconds(2)});
  });
  EXPECT_EQ(error.ranks(), std::vector<int>{2}) << error.what();
  leader.join();
}

TEST(RendezvousTest, AMemberThatTurnsToGarbageFailsIt) {
  const ScopedRuntimeDirectory directory;
  const auto jobs = make_local_jobs(3);
  std::thread other([&] {
    const FileDescriptor leader = connect_to_leader(jobs[0]);
    write_bytes(leader, encode(encode(Hello{protocol_version, 1, 3, jobs[0].token, version()})));
    const Bytes garbage(100, std::byte{0x55});
    write_bytes(leader, garbage);
    MessageReader reader;
    while (read_available(leader, reader) == ReadResult::open) std::this_thread::yield();
  });
  const auto start = std::chrono::steady_clock::now();
  const Error error = expect_error(Errc::protocol, [&] {
    Context context(jobs[0], {.construction_timeout = std::chrono::seconds(60)});
  });
  EXPECT_EQ(error.ranks(), std::vector<int>{1});
  // Rank 2 never comes: nobody waited for it until the timeout.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  other.join();
}

}  // namespace
}  // namespace iridium::test
