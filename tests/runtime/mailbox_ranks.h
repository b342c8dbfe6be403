// Ranks within a test that talk through mailboxes.
#pragma once

#include <fcntl.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/mailbox.h"

namespace iridium::test {

inline constexpr std::chrono::milliseconds long_enough{20'000};

/// Links in memory: a queue and a control thread per rank. A message travels as its bytes.
class MailboxNetwork {
 public:
  explicit MailboxNetwork(int size) : nodes_(static_cast<std::size_t>(size)) {}

  /// `rank`'s end of the links.
  static std::unique_ptr<ControlPlane> plane(const std::shared_ptr<MailboxNetwork>& network,
                                             int rank) {
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

  /// Returns when something has been sent to `rank`.
  void await_event(int rank) {
    Node& node = nodes_[static_cast<std::size_t>(rank)];
    std::unique_lock lock(node.mutex);
    node.changed.wait(lock, [&] { return node.was_sent_to; });
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
    bool was_sent_to = false;
    bool busy = false;
    bool stopped = false;
  };

  class Plane final : public ControlPlane {
   public:
    Plane(std::shared_ptr<MailboxNetwork> network, int rank)
        : network_(std::move(network)), rank_(rank) {}
    ~Plane() override {
      stop();
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
    void stop() override {
      network_->stop(rank_);
      if (thread_.joinable()) thread_.join();
    }

   private:
    std::shared_ptr<MailboxNetwork> network_;
    int rank_;
    std::thread thread_;
  };

  bool post(int to, Event event) {
    Node& node = nodes_[static_cast<std::size_t>(to)];
    const std::lock_guard lock(node.mutex);
    if (node.stopped) return false;
    node.events.push_back(std::move(event));
    node.was_sent_to = true;
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

inline Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Ranks with a mailbox each, and a channel 0 of all of them.
class MailboxRanks {
 public:
  explicit MailboxRanks(int size) : network(std::make_shared<MailboxNetwork>(size)) {
    std::vector<int> all(static_cast<std::size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    for (int rank = 0; rank < size; ++rank)
      mailboxes.push_back(
          std::make_unique<Mailbox>(rank, size, MailboxNetwork::plane(network, rank)));
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
                                    const std::string& data,
                                    std::chrono::milliseconds timeout = long_enough) {
    std::vector<std::string> texts;
    for (const Contribution& part :
         mailbox(rank).exchange(channel, call, {bytes_of(data), {}}, call_limit(timeout)))
      texts.push_back(text_of(part.data));
    return texts;
  }
  /// On channel 0.
  std::vector<std::string> exchange(int rank, const std::string& call, const std::string& data,
                                    std::chrono::milliseconds timeout = long_enough) {
    return exchange(rank, *world[static_cast<std::size_t>(rank)], call, data, timeout);
  }

  Mailbox& mailbox(int rank) { return *mailboxes[static_cast<std::size_t>(rank)]; }
  void drain_all() {
    for (int rank = 0; rank < static_cast<int>(mailboxes.size()); ++rank)
      if (mailboxes[static_cast<std::size_t>(rank)]) network->drain(rank);
  }

  std::shared_ptr<MailboxNetwork> network;
  std::vector<std::unique_ptr<Mailbox>> mailboxes;
  std::vector<std::unique_ptr<Channel>> world;
};

}  // namespace iridium::test
