#include "runtime/mailbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "runtime/mailbox_ranks.h"
#include "support/ranks.h"
#include "support/resources.h"

namespace iridium {
namespace {

using std::chrono::milliseconds;
using test::bytes_of;
using test::expect_error;
using test::long_enough;
using test::text_of;
using Ranks = test::MailboxRanks;

const milliseconds short_wait(30);

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
      const auto parts =
          ranks.mailbox(rank).exchange(*ranks.world[static_cast<std::size_t>(rank)], "call",
                                       std::move(mine), call_limit(long_enough));
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
    const auto parts =
        mailbox.exchange(channel, "call", {bytes_of("mine"), {}}, call_limit(long_enough));
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
  expect_message(error, {"ranks 2, 3 did not arrive",
                         "; ContextOptions::timeout or IRIDIUM_TIMEOUT changes the limit"});
}

TEST(MailboxNotices, TellForWhomACallWaits) {
  const FirstNoticeOverride first(milliseconds(1));
  Ranks ranks(4);
  ranks.network->deliver(1, 0, call_message(0, 1, "barrier", ""));
  ranks.network->drain(0);
  testing::internal::CaptureStderr();
  expect_error(Errc::timeout, [&] { ranks.exchange(0, "barrier", "", milliseconds(300)); });
  const std::string text = testing::internal::GetCapturedStderr();
  const std::string notice = " for ranks 2, 3 at barrier (call 1 of team world), and gives up in ";
  std::size_t notices = 0;
  for (std::size_t at = 0; (at = text.find(notice, at)) != std::string::npos; ++at) ++notices;
  // At 1, 3, 7, … 255 ms, fewer where the machine is slow.
  EXPECT_GE(notices, 1u) << text;
  EXPECT_LE(notices, 9u) << text;
}

TEST(MailboxNotices, DoNotEndAWait) {
  const FirstNoticeOverride first(milliseconds(1));
  Ranks ranks(2);
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_EQ(ranks.exchange(1, "barrier", "b"), (std::vector<std::string>{"a", "b"}));
  });
  EXPECT_EQ(ranks.exchange(0, "barrier", "a"), (std::vector<std::string>{"a", "b"}));
  late.join();
}

TEST(MailboxNotices, AreSilentInShortWaits) {
  Ranks ranks(2);
  testing::internal::CaptureStderr();
  expect_error(Errc::timeout, [&] { ranks.exchange(0, "barrier", "", short_wait); });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
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

TEST(MailboxFaults, ThatItsOwnRankFindsEndAWaitAtOnce) {
  Ranks ranks(3);
  std::thread finder([&] {
    // By then the call has begun.
    ranks.network->await_event(1);
    ranks.mailbox(0).fail(*ranks.world[0], {Errc::protocol, "found elsewhere", {1}});
  });
  const Deadline timeout(long_enough);
  const Error error = expect_error(Errc::protocol, [&] { ranks.exchange(0, "barrier", ""); });
  EXPECT_FALSE(timeout.expired());
  finder.join();
  expect_message(error, {"found elsewhere"});
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

TEST(MailboxPeers, ThatEndWithWorkQueuedAreLost) {
  Ranks ranks(2);
  auto departure = ranks.mailbox(1).leave();
  ranks.drain_all();
  EXPECT_FALSE(ranks.mailbox(0).fault_of(*ranks.world[0])) << "its work may still be done";
  expect_error(Errc::peer_left, [&] { ranks.exchange(0, "barrier", ""); });
  const auto other = ranks.make_channel(1, "team other", {0, 1});
  ranks.mailbox(0).open(1);
  ranks.mailboxes[1].reset();
  ranks.drain_all();
  EXPECT_FALSE(ranks.mailbox(0).fault_of(*other[0])) << "the links are the departure's";
  departure.reset();
  ranks.drain_all();
  const auto fault = ranks.mailbox(0).fault_of(*other[0]);
  ASSERT_TRUE(fault);
  expect_message(fault->error(), {"lost rank 1", "ended before the work that it had queued"});
}

TEST(MailboxPeers, ThatSayGoodbyeWhenTheirWorkIsDoneHaveLeft) {
  Ranks ranks(2);
  {
    const auto departure = ranks.mailbox(1).leave();
    departure->tell(MessageType::goodbye);
  }
  EXPECT_EQ(ranks.mailbox(1).leave(), nullptr) << "it has left already";
  ranks.drain_all();
  EXPECT_FALSE(ranks.mailbox(0).fault_of(*ranks.world[0]));
  expect_error(Errc::peer_left, [&] { ranks.exchange(0, "barrier", ""); });
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

TEST(MailboxPeers, ThatDieAfterTheirPartEndAWaitForOthers) {
  Ranks ranks(3);
  ranks.network->deliver(2, 0, call_message(0, 1, "barrier", "from 2"));
  ranks.network->kill(2, "the link broke");
  ranks.network->drain(0);
  // Rank 1 does not come; without the death that would be a timeout.
  const Error error = expect_error(Errc::peer_lost, [&] { ranks.exchange(0, "barrier", ""); });
  EXPECT_EQ(error.ranks(), std::vector<int>{2});
  expect_message(error, {"lost rank 2", "barrier", "the link broke"});
}

TEST(MailboxPeers, ThatDieAfterTheirPartLeaveTimeForWhatOthersHaveSent) {
  Ranks ranks(3);
  ranks.network->deliver(2, 0, call_message(0, 1, "barrier", "from 2"));
  ranks.network->kill(2, "the link broke");
  ranks.network->drain(0);
  std::thread sender([&] {
    ranks.network->await_event(1);
    ranks.network->deliver(1, 0, call_message(0, 1, "barrier", "from 1"));
  });
  EXPECT_EQ(ranks.exchange(0, "barrier", "mine"),
            (std::vector<std::string>{"mine", "from 1", "from 2"}));
  sender.join();
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

TEST(MailboxProtocol, AQuestionFromTheRendezvousDoesNotMatter) {
  Ranks ranks(2);
  Message question;
  question.type = MessageType::waiting;
  ranks.network->deliver(1, 0, question);
  on_ranks({0, 1}, [&](int rank) { ranks.exchange(rank, "barrier", ""); });
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

TEST(MailboxShutDown, EndsAWaitBeforeItsTimeoutAndAllLaterCalls) {
  Ranks ranks(2);
  const milliseconds timeout(60'000);
  on_ranks({0, 1}, [&](int rank) {
    if (rank == 1) {
      // Who has sent its part only waits from there on.
      ranks.network->await_event(1);
      return ranks.mailbox(0).shut_down();
    }
    const auto start = std::chrono::steady_clock::now();
    const Error error =
        expect_error(Errc::invalid_argument, [&] { ranks.exchange(0, "barrier", "", timeout); });
    EXPECT_LT(std::chrono::steady_clock::now() - start, timeout / 2);
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
