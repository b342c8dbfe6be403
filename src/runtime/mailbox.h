// Host calls: the one exchange every collective host call is made of.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/host_wait.h"
#include "runtime/control_message.h"
#include "runtime/control_plane.h"
#include "runtime/departure.h"
#include "runtime/fork_guard.h"

namespace iridium {

/// A list of ranks that make host calls together, in the same order. `Mailbox::exchange` serialises
/// them.
struct Channel {
  std::uint32_t id = 0;
  std::string name;          ///< for messages: "team world"
  std::vector<int> members;  ///< world ranks, this one among them
  std::mutex call_mutex = {};
  std::uint64_t calls = 0;  ///< guarded by `call_mutex`
};

/// What one member contributed to a call.
struct Contribution {
  Bytes data;
  FileDescriptor descriptor;
};

/// Told what ends waits on a channel, by the thread that notices. May not block, nor call the
/// mailbox.
class ChannelWatcher {
 public:
  virtual ~ChannelWatcher() = default;
  /// The channel has failed, or a member is lost.
  virtual void on_fault() = 0;
  /// A member has destroyed its context.
  virtual void on_left(int rank) = 0;
};

/// Receives for one rank, and knows who is gone and which channels have failed.
class Mailbox final : private ControlListener {
 public:
  /// `context_id` is the same for all ranks of a context, and no other's.
  Mailbox(int rank, int size, std::unique_ptr<ControlPlane> plane, std::uint64_t context_id = 0);
  ~Mailbox() override;

  /// Every member calls this with the same `call` text ("allocate(64 bytes)"); each gets what all
  /// contributed, in the order of the members. Different texts are `mismatch` on every member, and
  /// the channel stays usable. A member that is gone or does not come within the limit fails the
  /// channel for good, on every member; so does one that has died behind its part while another has
  /// not come.
  std::vector<Contribution> exchange(Channel& channel, const std::string& call, Contribution mine,
                                     const WaitLimit& limit);

  /// Fails the channel on every member, unless it has failed already. Who hears of a fault passes
  /// it on before it throws: a member that leaves because of it must not be taken for the culprit.
  /// Best effort: peers that do not read are not waited for.
  void fail(const Channel& channel, const Fault& fault);

  /// Why calls on the channel fail, if they do: its fault, or that a member is lost.
  std::optional<Fault> fault_of(const Channel& channel);

  /// Messages for channel ids up to the highest one opened are dropped unless the channel is open.
  void open(std::uint32_t channel_id);
  /// Tells `watcher` from now on, and what it has missed. Both live until the channel is closed.
  void watch(const Channel& channel, ChannelWatcher& watcher);
  void close(std::uint32_t channel_id);

  /// Says goodbye to all peers and stops. Later exchanges throw `invalid_argument`. Never
  /// blocks.
  void shut_down() noexcept;
  /// The same for a rank that leaves work on its streams: the goodbye is the caller's to say. Peers
  /// take a rank whose links close before that for lost. Null when there is nobody to say it to.
  std::unique_ptr<Departure> leave() noexcept;

 private:
  enum class Presence { here, left, lost };
  struct Peer {
    Presence presence = Presence::here;
    std::string reason;
    bool has_work = false;  ///< it has left, and work that it queued still runs
  };
  /// One member's part of a call.
  struct Part {
    std::string call;
    Contribution contribution;
  };
  struct Sender {
    std::deque<Part> parts;
    std::uint64_t received = 0;  ///< calls so far: their numbers have no gaps
  };
  struct Inbox {
    std::map<int, Sender> senders;  ///< by rank
    std::optional<Fault> fault;
    bool fault_told = false;           ///< to the other members, by this rank
    const Channel* waiting = nullptr;  ///< the exchange that waits now
    const Channel* channel = nullptr;  ///< of the watcher
    ChannelWatcher* watcher = nullptr;
  };

  void on_message(int from, Message message) override;
  void on_gone(int rank, const std::string& reason) override;
  void on_failure(const Error& error) override;

  /// Notes the fault unless there is one, and tells the watcher.
  static void set_fault(Inbox& inbox, const Fault& fault);
  /// Watchers of channels with this member.
  template <class Tell>
  void tell_watchers(int member, Tell tell);

  /// Stops, and hands out the links of the first call.
  std::unique_ptr<Departure> stop() noexcept;
  void send_to_members(const Channel& channel, const Message& message, const Deadline& deadline);
  std::vector<Part> collect(const Channel& channel, const std::string& call, HostWait& wait);
  /// Returns when the call has ended, one way or the other, or at the deadline. `absent` are the
  /// members whose parts have not come.
  void await_parts(const Channel& channel, const std::string& call, Inbox& inbox, HostWait& wait,
                   std::unique_lock<std::mutex>& lock, std::vector<int>& absent);
  static Part decode_call(Message message, std::uint64_t expected_sequence);
  static std::string describe_calls(const std::vector<int>& members,
                                    const std::vector<Part>& parts);
  std::vector<int> missing(const Channel& channel, const Inbox& inbox) const;
  Presence presence_of(int rank) const { return peers_[static_cast<std::size_t>(rank)].presence; }
  Fault explain(const Channel& channel, const std::string& call,
                const std::vector<int>& missing_ranks, const WaitLimit& limit) const;

  const int rank_;
  const std::uint64_t context_id_;
  std::mutex mutex_;
  const ForkGuard fork_guard_{{}, &mutex_};  ///< the control thread may hold it
  std::condition_variable changed_;
  std::vector<Peer> peers_;
  std::map<std::uint32_t, Inbox> inboxes_;
  std::uint32_t highest_opened_ = 0;
  bool stopped_ = false;

  std::shared_mutex plane_mutex_;  ///< shared by senders, taken alone by `shut_down`
  std::unique_ptr<ControlPlane> plane_;
};

}  // namespace iridium
