#include "runtime/mailbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace iridium {
namespace {

/// A fault or a goodbye is worth this much waiting for a peer that does not read, and no more.
constexpr std::chrono::milliseconds courtesy{50};

/// A member that dies behind its part ends the call only after so long: what the others have sent
/// may be on its way, and a program's last call succeeds though some have ended already.
constexpr std::chrono::milliseconds time_for_others{500};

/// A call orders memory: what a member wrote before it, every member sees after it. Between
/// processes the sockets see to that. Between ranks of one process they do too, but neither the
/// language nor ThreadSanitizer knows, so each member also bumps this before it sends and reads it
/// after it has heard from all. Calls that share an entry by chance are ordered more than they need
/// be.
std::atomic<std::uint32_t>& call_order(std::uint64_t context_id, std::uint32_t channel_id) {
  static std::array<std::atomic<std::uint32_t>, 256> orders = {};
  return orders[(context_id ^ (context_id >> 32) ^ channel_id) % orders.size()];
}

/// What a member is doing: "barrier (call 3 of team world)".
std::string describe_call(const Channel& channel, const std::string& call) {
  return fmt::format("{} (call {} of {})", call, channel.calls, channel.name);
}

}  // namespace

Mailbox::Mailbox(int rank, int size, std::unique_ptr<ControlPlane> plane, std::uint64_t context_id)
    : rank_(rank),
      context_id_(context_id),
      peers_(static_cast<std::size_t>(size)),
      plane_(std::move(plane)) {
  inboxes_[0];
  if (plane_) plane_->start(*this);
}

Mailbox::~Mailbox() {
  shut_down();
}

void Mailbox::open(std::uint32_t channel_id) {
  const std::lock_guard lock(mutex_);
  inboxes_[channel_id];
  highest_opened_ = std::max(highest_opened_, channel_id);
}

void Mailbox::watch(const Channel& channel, ChannelWatcher& watcher) {
  const std::lock_guard lock(mutex_);
  Inbox& inbox = inboxes_[channel.id];
  inbox.channel = &channel;
  inbox.watcher = &watcher;
  if (inbox.fault) watcher.on_fault();
  for (const int member : channel.members) {
    const Presence presence = peers_[static_cast<std::size_t>(member)].presence;
    if (presence == Presence::lost) watcher.on_fault();
    if (presence == Presence::left) watcher.on_left(member);
  }
}

void Mailbox::set_fault(Inbox& inbox, const Fault& fault) {
  if (inbox.fault) return;
  inbox.fault = fault;
  if (inbox.watcher != nullptr) inbox.watcher->on_fault();
}

template <class Tell>
void Mailbox::tell_watchers(int member, Tell tell) {
  for (auto& [id, inbox] : inboxes_) {
    if (inbox.watcher == nullptr) continue;
    const std::vector<int>& members = inbox.channel->members;
    if (std::find(members.begin(), members.end(), member) != members.end()) tell(*inbox.watcher);
  }
}

std::optional<Fault> Mailbox::fault_of(const Channel& channel) {
  const std::lock_guard lock(mutex_);
  if (const auto inbox = inboxes_.find(channel.id); inbox != inboxes_.end() && inbox->second.fault)
    return inbox->second.fault;
  for (const int member : channel.members) {
    const Peer& peer = peers_[static_cast<std::size_t>(member)];
    if (peer.presence == Presence::lost)
      return Fault{
          Errc::peer_lost,
          fmt::format("lost rank {}, a member of {}: {}", member, channel.name, peer.reason),
          {member}};
  }
  return std::nullopt;
}

void Mailbox::close(std::uint32_t channel_id) {
  const std::lock_guard lock(mutex_);
  inboxes_.erase(channel_id);
}

std::vector<Contribution> Mailbox::exchange(Channel& channel, const std::string& call,
                                            Contribution mine, const WaitLimit& limit) {
  const std::lock_guard call_lock(channel.call_mutex);
  std::optional<Fault> earlier;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) throw Error(Errc::invalid_argument, call + ": the context was destroyed");
    earlier = inboxes_[channel.id].fault;
  }
  if (earlier) {
    fail(channel, *earlier);
    throw Error(earlier->code, fmt::format("{} failed earlier: {}", channel.name, earlier->message),
                earlier->ranks);
  }
  HostWait wait(rank_, limit);
  Message message;
  message.channel = channel.id;
  message.sequence = channel.calls + 1;
  message.payload = PayloadWriter().text(call).bytes(mine.data).take();
  check_payload(message.payload);
  ++channel.calls;
  message.descriptor = std::move(mine.descriptor);
  std::atomic<std::uint32_t>& order = call_order(context_id_, channel.id);
  order.fetch_add(1, std::memory_order_release);
  send_to_members(channel, message, wait.deadline());
  std::vector<Part> parts = collect(channel, call, wait);
  static_cast<void>(order.load(std::memory_order_acquire));
  const auto self =
      std::find(channel.members.begin(), channel.members.end(), rank_) - channel.members.begin();
  parts.insert(parts.begin() + self,
               Part{call, {std::move(mine.data), std::move(message.descriptor)}});

  std::vector<int> others;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].call != parts[0].call) others.push_back(channel.members[i]);
  if (!others.empty())
    throw Error(Errc::mismatch,
                fmt::format("call {} of {}: {}", channel.calls, channel.name,
                            describe_calls(channel.members, parts)),
                others);
  std::vector<Contribution> contributions;
  for (Part& part : parts) contributions.push_back(std::move(part.contribution));
  return contributions;
}

Mailbox::Part Mailbox::decode_call(Message message, std::uint64_t expected_sequence) {
  if (message.sequence != expected_sequence)
    throw Error(Errc::protocol, fmt::format("call {} came where call {} was due", message.sequence,
                                            expected_sequence));
  PayloadReader reader(message.payload);
  Part part;
  part.call = reader.text();
  part.contribution.data.assign(reader.rest().begin(), reader.rest().end());
  part.contribution.descriptor = std::move(message.descriptor);
  return part;
}

std::string Mailbox::describe_calls(const std::vector<int>& members,
                                    const std::vector<Part>& parts) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& g) { return g.first == parts[i].call; });
    if (group == groups.end()) group = groups.insert(groups.end(), {parts[i].call, {}});
    group->second.push_back(members[i]);
  }
  std::string text;
  for (const auto& [call, ranks] : groups)
    text += fmt::format("{}{} called {}", text.empty() ? "" : "; ", list_ranks(ranks), call);
  return text;
}

void Mailbox::send_to_members(const Channel& channel, const Message& message,
                              const Deadline& deadline) {
  // A send that fails needs no handling: its peer is gone or stuck, and the wait that follows says
  // so.
  const auto self = std::find(channel.members.begin(), channel.members.end(), rank_);
  const auto place = static_cast<std::size_t>(self - channel.members.begin());
  const std::shared_lock lock(plane_mutex_);
  if (!plane_) return;
  for (std::size_t i = 1; i < channel.members.size(); ++i)
    plane_->send(channel.members[(place + i) % channel.members.size()], message, deadline);
}

std::vector<int> Mailbox::missing(const Channel& channel, const Inbox& inbox) const {
  std::vector<int> ranks;
  for (const int member : channel.members) {
    if (member == rank_) continue;
    const auto sender = inbox.senders.find(member);
    if (sender == inbox.senders.end() || sender->second.parts.empty()) ranks.push_back(member);
  }
  return ranks;
}

void Mailbox::await_parts(const Channel& channel, const std::string& call, Inbox& inbox,
                          HostWait& wait, std::unique_lock<std::mutex>& lock,
                          std::vector<int>& absent) {
  const auto has_ended = [&] {
    absent = missing(channel, inbox);
    return stopped_ || inbox.fault || absent.empty() || std::ranges::any_of(absent, [&](int rank) {
             return presence_of(rank) != Presence::here;
           });
  };
  const auto may_end = [&] {
    return has_ended() || std::ranges::any_of(channel.members, [&](int rank) {
             return presence_of(rank) == Presence::lost;
           });
  };
  // Ended by the members' messages, by the control thread's word that one is gone, by a fault, or
  // by the deadline.
  while (!changed_.wait_until(lock, wait.next_look(), may_end)) {
    if (wait.notice_is_due()) {
      const std::string whom =
          fmt::format("{} at {}", list_ranks(absent), describe_call(channel, call));
      lock.unlock();
      wait.tell(whom);
      lock.lock();
    }
    if (wait.deadline().expired()) break;
  }
  changed_.wait_until(lock, std::min(wait.deadline().at(), Deadline(time_for_others).at()),
                      has_ended);
}

std::vector<Mailbox::Part> Mailbox::collect(const Channel& channel, const std::string& call,
                                            HostWait& wait) {
  std::unique_lock lock(mutex_);
  Inbox& inbox = inboxes_[channel.id];
  inbox.waiting = &channel;
  std::vector<int> absent;
  await_parts(channel, call, inbox, wait, lock, absent);
  inbox.waiting = nullptr;

  if (absent.empty()) {
    std::vector<Part> parts;
    for (const int member : channel.members) {
      if (member == rank_) continue;
      auto& waiting = inbox.senders[member].parts;
      parts.push_back(std::move(waiting.front()));
      waiting.pop_front();
    }
    return parts;
  }
  if (stopped_) throw Error(Errc::invalid_argument, call + ": the context was destroyed");
  for (const int member : channel.members)
    if (presence_of(member) == Presence::lost && std::ranges::find(absent, member) == absent.end())
      absent.push_back(member);
  const Fault fault = inbox.fault ? *inbox.fault : explain(channel, call, absent, wait.limit());
  lock.unlock();
  fail(channel, fault);
  throw fault.error();
}

Fault Mailbox::explain(const Channel& channel, const std::string& call,
                       const std::vector<int>& missing_ranks, const WaitLimit& limit) const {
  const auto with = [&](Presence presence) {
    std::vector<int> ranks;
    for (const int rank : missing_ranks)
      if (presence_of(rank) == presence) ranks.push_back(rank);
    return ranks;
  };
  const std::string where = fmt::format("at {}", describe_call(channel, call));
  if (const auto lost = with(Presence::lost); !lost.empty())
    return {Errc::peer_lost,
            fmt::format("lost {} {}: {}", list_ranks(lost), where,
                        peers_[static_cast<std::size_t>(lost.front())].reason),
            lost};
  if (const auto left = with(Presence::left); !left.empty())
    return {
        Errc::peer_left,
        fmt::format("{} destroyed the context and cannot take part {}", list_ranks(left), where),
        left};
  return {
      Errc::timeout,
      fmt::format("{} did not arrive within {} {}, as rank {} saw it{}", list_ranks(missing_ranks),
                  format_seconds(limit.timeout), where, rank_, advice(limit)),
      missing_ranks};
}

void Mailbox::fail(const Channel& channel, const Fault& fault) {
  Message message;
  message.type = MessageType::fault;
  message.channel = channel.id;
  {
    const std::lock_guard lock(mutex_);
    Inbox& inbox = inboxes_[channel.id];
    set_fault(inbox, fault);
    if (std::exchange(inbox.fault_told, true)) return;
    message.payload = encode(*inbox.fault);
  }
  changed_.notify_all();
  send_to_members(channel, message, Deadline(courtesy));
}

void Mailbox::on_message(int from, Message message) {
  std::unique_lock lock(mutex_);
  Peer& peer = peers_[static_cast<std::size_t>(from)];
  if (message.type == MessageType::goodbye || message.type == MessageType::leaving) {
    peer.presence = Presence::left;
    peer.has_work = message.type == MessageType::leaving;
    tell_watchers(from, [&](ChannelWatcher& watcher) { watcher.on_left(from); });
    changed_.notify_all();
    return;
  }
  // A question that the end of the rendezvous has answered.
  if (message.type == MessageType::waiting) return;
  // A leader whose rendezvous fails late refuses ranks that are through it already.
  const bool is_fault = message.type == MessageType::fault || message.type == MessageType::refused;
  if (message.type != MessageType::call && !is_fault)
    throw Error(Errc::protocol, fmt::format("message type {} has no place after the rendezvous",
                                            static_cast<int>(message.type)));
  const bool open = inboxes_.contains(message.channel);
  if (!open && message.channel <= highest_opened_) return;
  Inbox& inbox = inboxes_[message.channel];
  if (is_fault) {
    set_fault(inbox, decode_fault(message.payload));
    changed_.notify_all();
    return;
  }
  Sender& sender = inbox.senders[from];
  sender.parts.push_back(decode_call(std::move(message), sender.received + 1));
  ++sender.received;
  if (inbox.waiting != nullptr && missing(*inbox.waiting, inbox).empty()) changed_.notify_all();
}

void Mailbox::on_gone(int rank, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    if (peer.presence == Presence::here || peer.has_work) {
      peer = {Presence::lost,
              peer.has_work ? "its process ended before the work that it had queued" : reason};
      tell_watchers(rank, [](ChannelWatcher& watcher) { watcher.on_fault(); });
    }
  }
  log(LogLevel::debug, rank_, "rank {} is gone: {}", rank, reason);
  changed_.notify_all();
}

void Mailbox::on_failure(const Error& error) {
  const Fault fault = to_fault(error, rank_);
  {
    const std::lock_guard lock(mutex_);
    for (auto& [id, inbox] : inboxes_) set_fault(inbox, fault);
  }
  changed_.notify_all();
}

void Mailbox::shut_down() noexcept {
  if (const auto departure = stop()) departure->tell(MessageType::goodbye);
}

std::unique_ptr<Departure> Mailbox::leave() noexcept {
  auto departure = stop();
  if (departure) departure->tell(MessageType::leaving);
  return departure;
}

std::unique_ptr<Departure> Mailbox::stop() noexcept {
  // The links are the parent's, whose threads may have held the locks.
  if (fork_guard_.in_child()) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  {
    const std::shared_lock lock(plane_mutex_);
    if (plane_) plane_->interrupt_sends();
  }
  const std::lock_guard lock(plane_mutex_);
  if (!plane_) return nullptr;
  plane_->stop();
  return std::make_unique<Departure>(rank_, static_cast<int>(peers_.size()), std::move(plane_));
}

}  // namespace iridium
