#include "runtime/mailbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <thread>

#include "support/ranks.h"
#include "support/resources.h"

namespace iridium {
namespace {

using std::chrono::milliseconds;
using test::expect_error;

const milliseconds long_enough(20'000);
const milliseconds short_wait(30);

/// Links in memory: a queue and a control thread per rank. A message travels as its bytes.
class Network {
 public:
  explicit Network(int size) : nodes_(static_cast<std::size_t>(size)) {}

  /// `rank`'s end of the links.
  static std::unique_ptr<ControlPlane> plane(const std::shared_ptr<Network>& network, int rank) {
    return std::make_unique<Plane>(network, rank);
  }

  bool deliver(int from, int to, const Message& message) {
    FileDescriptor descriptor;
    if (message.descriptor)
      descriptor = FileDescriptor(::fcntl(message.descriptor.get(), F_DUPFD_CLOEXEC, 0));
    return post(to, {from, encode(message), std::move(descriptor), {}});
  }

  /// `rank`'s process dies: every link to it breaks.
  void kill(int rank, const std::string& reason) {
    for (int to = 0; to < static_cast<int>(nodes_.size()); ++to)
      if (to != rank) post(to, {rank, {}, {}, reason});
  }

  /// Returns when `rank`'s control thread has handled all that was sent to it.
  void drain(int rank) {
    Node& node = nodes_[static_cast<std::size_t>(rank)];
    std::unique_lock lock(node.mutex);
    node.changed.wait(lock, [&] { return node.events.empty() && !node.busy; });
  }

 private:
  struct Event {
    int from = 0;
    Bytes bytes;
    FileDescriptor descriptor;
    std::string gone;  ///< why the link is closed; empty for a message
  };
  struct Node {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Event> events;
    bool busy = false;
    bool stopped = false;
  };

  class Plane final : public ControlPlane {
   public:
    Plane(std::shared_ptr<Network> network, int rank) : network_(std::move(network)), rank_(rank) {}
    ~Plane() override {
      network_->stop(rank_);
      if (thread_.joinable()) thread_.join();
      network_->kill(rank_, "its connection closed");
    }
    Plane(const Plane&) = delete;
    Plane& operator=(const Plane&) = delete;

    void start(ControlListener& listener) override {
      thread_ = std::thread([this, &listener] { network_->run(rank_, listener); });
    }
    bool send(int to, const Message& message, const Deadline&) override {
      return network_->deliver(rank_, to, message);
    }

   private:
    std::shared_ptr<Network> network_;
    int rank_;
    std::thread thread_;
  };

  bool post(int to, Event event) {
    Node& node = nodes_[static_cast<std::size_t>(to)];
    const std::lock_guard lock(node.mutex);
    if (node.stopped) return false;
    node.events.push_back(std::move(event));
    node.changed.notify_all();
    return true;
  }

  void stop(int rank) {
    Node& node = nodes_[static_cast<std::size_t>(rank)];
    const std::lock_guard lock(node.mutex);
    node.stopped = true;
    node.events.clear();
    node.changed.notify_all();
  }

  void run(int rank, ControlListener& listener) {
    Node& node = nodes_[static_cast<std::size_t>(rank)];
    std::set<int> closed;
    std::unique_lock lock(node.mutex);
    while (true) {
      node.changed.wait(lock, [&] { return node.stopped || !node.events.empty(); });
      if (node.stopped) return;
      Event event = std::move(node.events.front());
      node.events.pop_front();
      node.busy = true;
      lock.unlock();
      if (!closed.contains(event.from) && !handle(listener, event)) closed.insert(event.from);
      lock.lock();
      node.busy = false;
      node.changed.notify_all();
    }
  }

  /// False when the link is closed by it.
  static bool handle(ControlListener& listener, Event& event) {
    std::string reason = event.gone;
    if (reason.empty()) {
      try {
        MessageReader reader;
        if (event.descriptor) reader.feed(std::move(event.descriptor));
        reader.feed(event.bytes);
        listener.on_message(event.from, std::move(reader.next().value()));
        return true;
      } catch (const Error& error) {
        reason = error.what();
      }
    }
    listener.on_gone(event.from, reason);
    return false;
  }

  std::vector<Node> nodes_;
};

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Message call_message(std::uint32_t channel, std::uint64_t sequence, const std::string& call,
                     const std::string& data) {
  Message message;
  message.channel = channel;
  message.sequence = sequence;
  message.payload = PayloadWriter().text(call).bytes(bytes_of(data)).take();
  return message;
}

Message fault_message(std::uint32_t channel, const Fault& fault) {
  Message message;
  message.type = MessageType::fault;
  message.channel = channel;
  message.payload = encode(fault);
  return message;
}

/// Ranks with a mailbox each, and a channel 0 of all of them.
class Ranks {
 public:
  explicit Ranks(int size) : network(std::make_shared<Network>(size)) {
    std::vector<int> all(static_cast<std::size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    for (int rank = 0; rank < size; ++rank)
      mailboxes.push_back(std::make_unique<Mailbox>(rank, size, Network::plane(network, rank)));
    world = make_channel(0, "team world", all);
  }

  /// A channel's state on every rank.
  std::vector<std::unique_ptr<Channel>> make_channel(std::uint32_t id, const std::string& name,
                                                     const std::vector<int>& members) const {
    std::vector<std::unique_ptr<Channel>> channels;
    for (std::size_t rank = 0; rank < mailboxes.size(); ++rank) {
      channels.push_back(std::make_unique<Channel>());
      channels.back()->id = id;
      channels.back()->name = name;
      channels.back()->members = members;
    }
    return channels;
  }

  std::vector<std::string> exchange(int rank, Channel& channel, const std::string& call,
                                    const std::string& data, milliseconds timeout = long_enough) {
    std::vector<std::string> texts;
    for (const Contribution& part :
         mailbox(rank).exchange(channel, call, {bytes_of(data), {}}, timeout))
      texts.push_back(text_of(part.data));
    return texts;
  }
  /// On channel 0.
  std::vector<std::string> exchange(int rank, const std::string& call, const std::string& data,
                                    milliseconds timeout = long_enough) {
    return exchange(rank, *world[static_cast<std::size_t>(rank)], call, data, timeout);
  }

  Mailbox& mailbox(int rank) { return *mailboxes[static_cast<std::size_t>(rank)]; }
  void drain_all() {
    for (int rank = 0; rank < static_cast<int>(mailboxes.size()); ++rank)
      if (mailboxes[static_cast<std::size_t>(rank)]) network->drain(rank);
  }

  std::shared_ptr<Network> network;
  std::vector<std::unique_ptr<Mailbox>> mailboxes;
  std::vector<std::unique_ptr<Channel>> world;
};

/// Runs `body` on a thread for each of `ranks`.
void on_ranks(const std::vector<int>& ranks, const std::function<void(int rank)>& body) {
  std::vector<std::thread> threads;
  for (const int rank : ranks)
    threads.emplace_back([&body, rank] {
      try {
        body(rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

void expect_message(const Error& error, const std::vector<std::string>& parts) {
  const std::string message = error.what();
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
}

TEST(MailboxExchange, ReturnsContributionsInTheOrderOfTheMembers) {
  Ranks ranks(4);
  const auto channels = ranks.make_channel(1, "team odd", {3, 0, 2});
  on_ranks({0, 2, 3}, [&](int rank) {
    ranks.mailbox(rank).open(1);
    for (int call = 0; call < 50; ++call) {
      const std::string suffix = "." + std::to_string(call);
      EXPECT_EQ(ranks.exchange(rank, *channels[static_cast<std::size_t>(rank)], "call",
                               std::to_string(rank) + suffix),
                (std::vector<std::string>{"3" + suffix, "0" + suffix, "2" + suffix}));
    }
  });
}

TEST(MailboxExchange, CarriesDescriptors) {
  const std::size_t before = test::open_descriptors();
  {
    Ranks ranks(3);
    on_ranks({0, 1, 2}, [&](int rank) {
      Contribution mine;
      if (rank != 1) mine.descriptor = FileDescriptor(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
      const auto parts = ranks.mailbox(rank).exchange(*ranks.world[static_cast<std::size_t>(rank)],
                                                      "call", std::move(mine), long_enough);
      ASSERT_EQ(parts.size(), 3u);
      EXPECT_FALSE(parts[1].descriptor);
      for (const std::size_t from : {0u, 2u}) {
        char byte = 'x';
        ASSERT_EQ(::read(parts[from].descriptor.get(), &byte, 1), 1);
        EXPECT_EQ(byte, '\0');
      }
    });
  }
  EXPECT_EQ(test::open_descriptors(), before);
}

TEST(MailboxExchange, NeedsNobodyInAWorldOfOne) {
  Mailbox mailbox(0, 1, nullptr);
  Channel channel;
  channel.name = "team world";
  channel.members = {0};
  for (int call = 0; call < 3; ++call) {
    const auto parts = mailbox.exchange(channel, "call", {bytes_of("mine"), {}}, long_enough);
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_EQ(text_of(parts[0].data), "mine");
  }
}

TEST(MailboxExchange, KeepsChannelsApart) {
  Ranks ranks(3);
  const auto second = ranks.make_channel(1, "team one", {0, 1, 2});
  on_ranks({0, 1, 2}, [&](int rank) {
    ranks.mailbox(rank).open(1);
    const auto run = [&](Channel& channel, const std::string& prefix) {
      for (int call = 0; call < 100; ++call) {
        const std::string text = prefix + std::to_string(call);
        EXPECT_EQ(ranks.exchange(rank, channel, prefix, text), std::vector<std::string>(3, text));
      }
    };
    std::thread other([&] { run(*second[static_cast<std::size_t>(rank)], "b"); });
    run(*ranks.world[static_cast<std::size_t>(rank)], "a");
    other.join();
  });
}

TEST(MailboxExchange, SerialisesTheCallsOfARanksThreads) {
  Ranks ranks(2);
  on_ranks({0, 1}, [&](int rank) {
    const auto run = [&] {
      for (int call = 0; call < 100; ++call)
        EXPECT_EQ(ranks.exchange(rank, "call", "same"), std::vector<std::string>(2, "same"));
    };
    std::thread other(run);
    run();
    other.join();
  });
}

TEST(MailboxMismatch, NamesWhoCalledWhatAndLeavesTheChannelUsable) {
  Ranks ranks(4);
  on_ranks({0, 1, 2, 3}, [&](int rank) {
    for (int round = 1; round <= 3; ++round) {
      const Error error = expect_error(Errc::mismatch, [&] {
        ranks.exchange(rank, rank == 2 ? "allocate(8 bytes)" : "barrier", "");
      });
      EXPECT_EQ(error.ranks(), std::vector<int>{2});
      expect_message(error, {"call " + std::to_string(2 * round - 1) + " of team world",
                             "ranks 0, 1, 3 called barrier", "rank 2 called allocate(8 bytes)"});
      EXPECT_EQ(ranks.exchange(rank, "barrier", "x"), std::vector<std::string>(4, "x"));
    }
  });
}

TEST(MailboxMismatch, GivesAllRanksTheSameMessage) {
  Ranks ranks(3);
  std::vector<std::string> messages(3);
  on_ranks({0, 1, 2}, [&](int rank) {
    messages[static_cast<std::size_t>(rank)] =
        expect_error(Errc::mismatch, [&] {
          ranks.exchange(rank, "call " + std::to_string(rank), "");
        }).what();
  });
  EXPECT_EQ(messages[1], messages[0]);
  EXPECT_EQ(messages[2], messages[0]);
}

TEST(MailboxTimeout, FailsTheChannelOnAllMembersWithTheFirstRecord) {
  Ranks ranks(4);
  std::vector<std::string> messages(4);
  on_ranks({0, 1, 3}, [&](int rank) {
    const Error error = expect_error(Errc::timeout, [&] {
      ranks.exchange(rank, "barrier", "", rank == 3 ? short_wait : long_enough);
    });
    EXPECT_TRUE(std::find(error.ranks().begin(), error.ranks().end(), 2) != error.ranks().end());
    expect_message(error, {"as rank 3 saw it", "barrier", "call 1 of team world", "0.03 s"});
    messages[static_cast<std::size_t>(rank)] = error.what();
  });
  EXPECT_EQ(messages[0], messages[3]);
  EXPECT_EQ(messages[1], messages[3]);
}

TEST(MailboxTimeout, NamesExactlyTheMissing) {
  Ranks ranks(4);
  ranks.network->deliver(1, 0, call_message(0, 1, "barrier", ""));
  ranks.network->drain(0);
  const Error error =
      expect_error(Errc::timeout, [&] { ranks.exchange(0, "barrier", "", short_wait); });
  EXPECT_EQ(error.ranks(), (std::vector<int>{2, 3}));
  expect_message(error, {"ranks 2, 3 did not arrive"});
}

TEST(MailboxTimeout, IsTheLatecomersFaultToo) {
  Ranks ranks(3);
  const Error first =
      expect_error(Errc::timeout, [&] { ranks.exchange(0, "barrier", "", short_wait); });
  ranks.drain_all();
  for (const int rank : {1, 2}) {
    const Error late = expect_error(Errc::timeout, [&] { ranks.exchange(rank, "barrier", ""); });
    EXPECT_EQ(late.ranks(), first.ranks());
    expect_message(late, {"team world failed earlier", "as rank 0 saw it"});
  }
  for (int again = 0; again < 2; ++again) {
    const Error error = expect_error(Errc::timeout, [&] { ranks.exchange(0, "other", ""); });
    EXPECT_EQ(error.ranks(), first.ranks());
    expect_message(error, {"failed earlier", "at barrier"});
  }
}

TEST(MailboxFaults, KeepTheFirstRecord) {
  Ranks ranks(3);
  ranks.network->deliver(1, 0, fault_message(0, {Errc::timeout, "the first", {2}}));
  ranks.network->deliver(2, 0, fault_message(0, {Errc::peer_lost, "the second", {1}}));
  ranks.network->drain(0);
  const Error error = expect_error(Errc::timeout, [&] { ranks.exchange(0, "barrier", ""); });
  EXPECT_EQ(error.ranks(), std::vector<int>{2});
  expect_message(error, {"the first"});
}

TEST(MailboxFaults, EndAWaitAtOnce) {
  Ranks ranks(3);
  on_ranks({0, 2}, [&](int rank) {
    if (rank == 2) {
      ranks.network->deliver(2, 0, fault_message(0, {Errc::timeout, "from rank 2", {1}}));
      return;
    }
    const Error error = expect_error(Errc::timeout, [&] { ranks.exchange(0, "barrier", ""); });
    expect_message(error, {"from rank 2"});
  });
}

TEST(MailboxFaults, OfALateRendezvousCountToo) {
  Ranks ranks(2);
  Message refused = fault_message(0, {Errc::permission, "turned away", {1}});
  refused.type = MessageType::refused;
  ranks.network->deliver(1, 0, refused);
  ranks.network->drain(0);
  const Error error = expect_error(Errc::permission, [&] { ranks.exchange(0, "barrier", ""); });
  expect_message(error, {"turned away"});
}

TEST(MailboxFaults, LeaveOtherChannelsAlone) {
  Ranks ranks(3);
  const auto pair = ranks.make_channel(1, "team pair", {0, 1});
  for (const int rank : {0, 1}) ranks.mailbox(rank).open(1);
  expect_error(Errc::timeout, [&] { ranks.exchange(0, "barrier", "", short_wait); });
  ranks.drain_all();
  on_ranks({0, 1}, [&](int rank) {
    EXPECT_EQ(ranks.exchange(rank, *pair[static_cast<std::size_t>(rank)], "call", "x"),
              std::vector<std::string>(2, "x"));
  });
}

TEST(MailboxPeers, ThatDieAreLost) {
  Ranks ranks(3);
  on_ranks({0, 1, 2}, [&](int rank) {
    if (rank == 2) return ranks.network->kill(2, "the link broke");
    const Error error = expect_error(Errc::peer_lost, [&] { ranks.exchange(rank, "barrier", ""); });
    EXPECT_EQ(error.ranks(), std::vector<int>{2});
    expect_message(error, {"lost rank 2", "barrier", "the link broke"});
  });
}

TEST(MailboxPeers, ThatSayGoodbyeHaveLeft) {
  Ranks ranks(3);
  ranks.mailboxes[2].reset();
  on_ranks({0, 1}, [&](int rank) {
    const Error error = expect_error(Errc::peer_left, [&] { ranks.exchange(rank, "barrier", ""); });
    EXPECT_EQ(error.ranks(), std::vector<int>{2});
    expect_message(error, {"rank 2 destroyed the context", "barrier"});
  });
}

TEST(MailboxPeers, ThatLeaveEndAWait) {
  Ranks ranks(3);
  on_ranks({0, 1, 2}, [&](int rank) {
    if (rank == 2) return ranks.mailboxes[2].reset();
    expect_error(Errc::peer_left, [&] { ranks.exchange(rank, "barrier", ""); });
  });
}

TEST(MailboxPeers, ThatLeaveAfterTheirPartHaveTakenPart) {
  Ranks ranks(2);
  Message goodbye;
  goodbye.type = MessageType::goodbye;
  ranks.network->deliver(1, 0, call_message(0, 1, "barrier", "from 1"));
  ranks.network->deliver(1, 0, call_message(0, 2, "barrier", "again from 1"));
  ranks.network->deliver(1, 0, goodbye);
  ranks.network->drain(0);
  EXPECT_EQ(ranks.exchange(0, "barrier", "mine"), (std::vector<std::string>{"mine", "from 1"}));
  EXPECT_EQ(ranks.exchange(0, "barrier", "mine"),
            (std::vector<std::string>{"mine", "again from 1"}));
  expect_error(Errc::peer_left, [&] { ranks.exchange(0, "barrier", "mine"); });
}

TEST(MailboxPeers, ThatDieAfterTheirPartHaveTakenPart) {
  Ranks ranks(2);
  ranks.network->deliver(1, 0, call_message(0, 1, "barrier", "from 1"));
  ranks.network->kill(1, "the link broke");
  ranks.network->drain(0);
  EXPECT_EQ(ranks.exchange(0, "barrier", "mine"), (std::vector<std::string>{"mine", "from 1"}));
  expect_error(Errc::peer_lost, [&] { ranks.exchange(0, "barrier", "mine"); });
}

TEST(MailboxPeers, OutsideTheChannelDoNotMatter) {
  Ranks ranks(3);
  const auto pair = ranks.make_channel(1, "team pair", {0, 1});
  for (const int rank : {0, 1}) ranks.mailbox(rank).open(1);
  ranks.mailboxes[2].reset();
  ranks.drain_all();
  on_ranks({0, 1}, [&](int rank) {
    EXPECT_EQ(ranks.exchange(rank, *pair[static_cast<std::size_t>(rank)], "call", "x"),
              std::vector<std::string>(2, "x"));
  });
}

TEST(MailboxPeers, ThatAreLostCountMoreThanThoseThatLeft) {
  Ranks ranks(3);
  Message goodbye;
  goodbye.type = MessageType::goodbye;
  ranks.network->deliver(1, 0, goodbye);
  ranks.network->kill(2, "the link broke");
  ranks.network->drain(0);
  const Error error = expect_error(Errc::peer_lost, [&] { ranks.exchange(0, "barrier", ""); });
  EXPECT_EQ(error.ranks(), std::vector<int>{2});
}

TEST(MailboxChannels, OpenedLaterKeepWhatCameEarly) {
  Ranks ranks(2);
  const auto channels = ranks.make_channel(5, "team five", {0, 1});
  on_ranks({0, 1}, [&](int rank) {
    if (rank == 1) {
      ranks.mailbox(1).open(5);
      EXPECT_EQ(ranks.exchange(1, *channels[1], "call", "one"),
                (std::vector<std::string>{"zero", "one"}));
      return;
    }
    ranks.mailbox(0).open(4);
    ranks.network->deliver(1, 0, call_message(6, 1, "call", "early"));
    ranks.network->drain(0);
    ranks.mailbox(0).open(5);
    EXPECT_EQ(ranks.exchange(0, *channels[0], "call", "zero"),
              (std::vector<std::string>{"zero", "one"}));
  });
  ranks.mailbox(0).open(6);
  const auto later = ranks.make_channel(6, "team six", {0, 1});
  EXPECT_EQ(ranks.exchange(0, *later[0], "call", "zero"),
            (std::vector<std::string>{"zero", "early"}));
}

TEST(MailboxChannels, OpenedLaterKeepFaultsThatCameEarly) {
  Ranks ranks(2);
  ranks.network->deliver(1, 0, fault_message(3, {Errc::timeout, "too late", {0}}));
  ranks.network->drain(0);
  ranks.mailbox(0).open(3);
  const auto channels = ranks.make_channel(3, "team three", {0, 1});
  const Error error =
      expect_error(Errc::timeout, [&] { ranks.exchange(0, *channels[0], "call", ""); });
  expect_message(error, {"too late"});
}

TEST(MailboxChannels, ClosedOnesDropTheirMessages) {
  Ranks ranks(2);
  ranks.mailbox(0).open(1);
  ranks.mailbox(0).open(2);
  ranks.mailbox(0).close(1);
  // Were it kept, the number would be a protocol error and cost the link.
  ranks.network->deliver(1, 0, call_message(1, 77, "late", ""));
  ranks.network->deliver(1, 0, fault_message(1, {Errc::timeout, "late", {}}));
  ranks.network->drain(0);
  on_ranks({0, 1}, [&](int rank) {
    EXPECT_EQ(ranks.exchange(rank, "call", "x"), std::vector<std::string>(2, "x"));
  });
}

TEST(MailboxProtocol, WrongNumbersCostTheLink) {
  for (const std::uint64_t number : {0u, 2u, 7u}) {
    Ranks ranks(2);
    ranks.network->deliver(1, 0, call_message(0, number, "barrier", ""));
    ranks.network->drain(0);
    const Error error = expect_error(Errc::peer_lost, [&] { ranks.exchange(0, "barrier", ""); });
    EXPECT_EQ(error.ranks(), std::vector<int>{1});
    expect_message(error, {"call " + std::to_string(number) + " came where call 1 was due"});
  }
}

TEST(MailboxProtocol, RepeatedNumbersCostTheLink) {
  Ranks ranks(2);
  ranks.network->deliver(1, 0, call_message(0, 1, "barrier", "one"));
  ranks.network->deliver(1, 0, call_message(0, 1, "barrier", "one again"));
  ranks.network->drain(0);
  EXPECT_EQ(ranks.exchange(0, "barrier", "mine"), (std::vector<std::string>{"mine", "one"}));
  const Error error = expect_error(Errc::peer_lost, [&] { ranks.exchange(0, "barrier", ""); });
  expect_message(error, {"call 1 came where call 2 was due"});
}

TEST(MailboxProtocol, MessagesThatHaveNoPlaceCostTheLink) {
  std::vector<Message> messages(5);
  messages[0].type = MessageType::hello;
  messages[1].type = MessageType::welcome;
  messages[2].type = MessageType::link;
  messages[3].type = MessageType::fault;  // without a fault in it
  messages[4].type = MessageType::call;   // without a call in it
  messages[4].sequence = 1;
  for (const Message& message : messages) {
    Ranks ranks(3);
    ranks.network->deliver(1, 0, message);
    ranks.network->drain(0);
    const Error error = expect_error(Errc::peer_lost, [&] { ranks.exchange(0, "barrier", ""); });
    EXPECT_EQ(error.ranks(), std::vector<int>{1});
    expect_message(error, {"protocol"});
  }
}

TEST(MailboxProtocol, ContributionsThatDoNotFitLeaveTheChannelUsable) {
  Ranks ranks(2);
  expect_error(Errc::invalid_argument, [&] {
    ranks.exchange(0, "call", std::string(max_payload_bytes + 1, 'x'), short_wait);
  });
  on_ranks({0, 1}, [&](int rank) {
    EXPECT_EQ(ranks.exchange(rank, "call", "x"), std::vector<std::string>(2, "x"));
  });
}

TEST(MailboxShutDown, EndsAWaitAndAllLaterCalls) {
  Ranks ranks(2);
  on_ranks({0, 1}, [&](int rank) {
    if (rank == 1) {
      ranks.network->drain(1);
      return ranks.mailbox(0).shut_down();
    }
    const Error error =
        expect_error(Errc::invalid_argument, [&] { ranks.exchange(0, "barrier", ""); });
    expect_message(error, {"barrier", "the context was destroyed"});
  });
  expect_error(Errc::invalid_argument, [&] { ranks.exchange(0, "barrier", ""); });
  ranks.mailbox(0).shut_down();
}

TEST(MailboxShutDown, SaysGoodbyeOnce) {
  Ranks ranks(3);
  ranks.mailbox(0).shut_down();
  ranks.mailboxes[0].reset();
  ranks.drain_all();
  for (const int rank : {1, 2})
    expect_error(Errc::peer_left, [&] { ranks.exchange(rank, "barrier", "", long_enough); });
}

}  // namespace
}  // namespace iridium
