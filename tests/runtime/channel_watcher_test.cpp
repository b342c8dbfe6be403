#include <gtest/gtest.h>

#include "runtime/mailbox.h"

namespace iridium {
namespace {

/// Links that deliver at once, on the thread that sends.
class Wires {
 public:
  explicit Wires(int size) : listeners_(static_cast<std::size_t>(size)) {}

  static std::unique_ptr<ControlPlane> plane(const std::shared_ptr<Wires>& wires, int rank) {
    return std::make_unique<Plane>(wires, rank);
  }

  /// `rank`'s process dies.
  void cut(int rank, const std::string& reason) {
    listeners_[static_cast<std::size_t>(rank)] = nullptr;
    for (ControlListener* listener : listeners_)
      if (listener != nullptr) listener->on_gone(rank, reason);
  }

 private:
  class Plane final : public ControlPlane {
   public:
    Plane(std::shared_ptr<Wires> wires, int rank) : wires_(std::move(wires)), rank_(rank) {}
    ~Plane() override { wires_->cut(rank_, "its connection closed"); }
    Plane(const Plane&) = delete;
    Plane& operator=(const Plane&) = delete;

    void start(ControlListener& listener) override {
      wires_->listeners_[static_cast<std::size_t>(rank_)] = &listener;
    }
    bool send(int to, const Message& message, const Deadline&) override {
      ControlListener* const listener = wires_->listeners_[static_cast<std::size_t>(to)];
      if (listener == nullptr) return false;
      MessageReader reader;
      reader.feed(encode(message));
      listener->on_message(rank_, std::move(reader.next().value()));
      return true;
    }
    void stop() override { wires_->listeners_[static_cast<std::size_t>(rank_)] = nullptr; }

   private:
    std::shared_ptr<Wires> wires_;
    int rank_;
  };

  std::vector<ControlListener*> listeners_;
};

/// Keeps what it is told.
class Listener final : public ChannelWatcher {
 public:
  void on_fault() override { ++faults; }
  void on_left(int rank) override { left.push_back(rank); }

  int faults = 0;
  std::vector<int> left;
};

/// Four ranks; a channel 1 of three of them, and a watcher of it at rank 0.
class ChannelWatchers : public testing::Test {
 public:
  static constexpr int size = 4;

  void SetUp() override {
    channel.id = 1;
    channel.name = "team three";
    channel.members = {2, 0, 1};
    for (int rank = 0; rank < size; ++rank) {
      mailboxes.push_back(std::make_unique<Mailbox>(rank, size, Wires::plane(wires, rank)));
      mailboxes.back()->open(channel.id);
    }
  }

  void watch() { mailboxes[0]->watch(channel, listener); }
  void expect_heard(int faults, const std::vector<int>& left) const {
    EXPECT_EQ(listener.faults, faults);
    EXPECT_EQ(listener.left, left);
  }

  std::shared_ptr<Wires> wires = std::make_shared<Wires>(size);
  Channel channel;  ///< ranks that make no exchange can share it
  Listener listener;
  std::vector<std::unique_ptr<Mailbox>> mailboxes;
  const Fault fault = {Errc::timeout, "rank 1 was late", {1}};
};

void expect_same(const std::optional<Fault>& found, const Fault& expected) {
  ASSERT_TRUE(found);
  EXPECT_EQ(found->code, expected.code);
  EXPECT_EQ(found->message, expected.message);
  EXPECT_EQ(found->ranks, expected.ranks);
}

TEST_F(ChannelWatchers, HearNothingWhileAllIsWell) {
  watch();
  expect_heard(0, {});
  EXPECT_FALSE(mailboxes[0]->fault_of(channel));
}

TEST_F(ChannelWatchers, HearOfThisRanksFaultOnce) {
  watch();
  mailboxes[0]->fail(channel, fault);
  expect_heard(1, {});
  mailboxes[0]->fail(channel, {Errc::peer_lost, "another", {2}});
  expect_heard(1, {});
  for (const std::size_t rank : {0u, 1u, 2u})
    expect_same(mailboxes[rank]->fault_of(channel), fault);
}

TEST_F(ChannelWatchers, HearOfAPeersFaultOnce) {
  watch();
  mailboxes[1]->fail(channel, fault);
  expect_heard(1, {});
  expect_same(mailboxes[0]->fault_of(channel), fault);
  mailboxes[2]->fail(channel, fault);
  expect_heard(1, {});
}

TEST_F(ChannelWatchers, HearOfALostMember) {
  watch();
  wires->cut(2, "the link broke");
  expect_heard(1, {});
  const std::optional<Fault> found = mailboxes[0]->fault_of(channel);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->code, Errc::peer_lost);
  EXPECT_EQ(found->ranks, std::vector<int>{2});
  for (const std::string part : {"rank 2", "team three", "the link broke"})
    EXPECT_NE(found->message.find(part), std::string::npos) << found->message;
}

TEST_F(ChannelWatchers, HearWhichMemberLeft) {
  watch();
  mailboxes[2].reset();
  expect_heard(0, {2});
  mailboxes[1]->shut_down();
  expect_heard(0, {2, 1});
  EXPECT_FALSE(mailboxes[0]->fault_of(channel)) << "who leaves in peace is no fault";
}

TEST_F(ChannelWatchers, HearOfAFaultTheyHaveMissed) {
  mailboxes[1]->fail(channel, fault);
  watch();
  expect_heard(1, {});
}

TEST_F(ChannelWatchers, HearOfMembersTheyHaveMissed) {
  wires->cut(1, "the link broke");
  mailboxes[2].reset();
  watch();
  expect_heard(1, {2});
}

TEST_F(ChannelWatchers, DoNotHearOfRanksThatAreNoMembers) {
  channel.members = {0, 1};
  mailboxes[3].reset();
  watch();
  wires->cut(2, "the link broke");
  expect_heard(0, {});
  EXPECT_FALSE(mailboxes[0]->fault_of(channel));
}

TEST_F(ChannelWatchers, DoNotHearOfOtherChannels) {
  Channel other;
  other.id = 2;
  other.name = "team other";
  other.members = {0, 1, 2, 3};
  for (const auto& mailbox : mailboxes) mailbox->open(other.id);
  watch();
  mailboxes[1]->fail(other, fault);
  mailboxes[0]->fail(other, fault);
  expect_heard(0, {});
  EXPECT_FALSE(mailboxes[0]->fault_of(channel));
  expect_same(mailboxes[0]->fault_of(other), fault);
}

TEST_F(ChannelWatchers, OfSeveralChannelsAllHearOfAMember) {
  Channel other;
  other.id = 2;
  other.members = {0, 2};
  Listener second;
  mailboxes[0]->open(other.id);
  mailboxes[0]->watch(other, second);
  watch();
  mailboxes[2].reset();
  wires->cut(1, "the link broke");
  expect_heard(1, {2});
  EXPECT_EQ(second.left, std::vector<int>{2});
  EXPECT_EQ(second.faults, 0) << "rank 1 is none of its members";
  mailboxes[0]->close(other.id);
}

TEST_F(ChannelWatchers, HearNothingAfterTheChannelIsClosed) {
  watch();
  mailboxes[0]->close(channel.id);
  mailboxes[1]->fail(channel, fault);
  wires->cut(1, "the link broke");
  mailboxes[2].reset();
  expect_heard(0, {});
}

TEST_F(ChannelWatchers, FindTheFaultBeforeTheLoss) {
  wires->cut(1, "the link broke");
  mailboxes[2]->fail(channel, fault);
  expect_same(mailboxes[0]->fault_of(channel), fault);
}

}  // namespace
}  // namespace iridium
