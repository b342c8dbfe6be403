#include "runtime/unix_control_plane.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "base/log.h"
#include "base/system_error.h"
#include "base/thread.h"
#include "runtime/fork_guard.h"
#include "runtime/socket.h"

namespace iridium {
namespace {

struct Link {
  explicit Link(ControlLink link)
      : connection(std::move(link.socket)), reader(std::move(link.reader)) {}

  FileDescriptor connection;
  MessageReader reader;   ///< the control thread's
  std::mutex send_mutex;  ///< a message's bytes stay together
};

class UnixControlPlane final : public ControlPlane {
 public:
  UnixControlPlane(int rank, std::vector<ControlLink> links) : rank_(rank) {
    for (ControlLink& link : links) links_.emplace_back(std::move(link));
    epoll_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
    wake_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!epoll_ || !wake_) throw system_error("cannot set up the control thread");
    watch(wake_, stop_event);
    for (std::size_t peer = 0; peer < links_.size(); ++peer)
      if (links_[peer].connection) watch(links_[peer].connection, static_cast<std::uint32_t>(peer));
    std::vector<int> descriptors;
    for (const Link& link : links_)
      if (link.connection) descriptors.push_back(link.connection.get());
    fork_guard_.emplace(std::move(descriptors));
  }

  ~UnixControlPlane() override { end_thread(); }

  void start(ControlListener& listener) override {
    listener_ = &listener;
    thread_ = std::make_unique<std::thread>(start_thread([this] { run(); }));
  }

  bool send(int to, const Message& message, const Deadline& deadline) override {
    if (fork_guard_->in_child()) return false;
    Link& link = links_[static_cast<std::size_t>(to)];
    const std::lock_guard lock(link.send_mutex);
    try {
      const SendResult result = send_message(link.connection, message, deadline);
      // What follows half a message would be read as its other half.
      if (result == SendResult::torn) ::shutdown(link.connection.get(), SHUT_RDWR);
      return result == SendResult::sent;
    } catch (const Error& error) {
      log(LogLevel::warn, rank_, "cannot send to rank {}: {}", to, error.what());
      return false;
    }
  }

  void interrupt_sends() override {
    for (Link& link : links_) {
      if (!link.connection) continue;
      const std::unique_lock lock(link.send_mutex, std::try_to_lock);
      if (!lock) ::shutdown(link.connection.get(), SHUT_WR);
    }
  }

  void stop() override {
    end_thread();
    if (fork_guard_->in_child()) return;
    // Else whoever sends to this rank would wait for it once the link is full.
    for (const Link& link : links_)
      if (link.connection) ::shutdown(link.connection.get(), SHUT_RD);
  }

 private:
  static constexpr std::uint32_t stop_event = ~std::uint32_t{0};

  void watch(const FileDescriptor& descriptor, std::uint32_t tag) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u32 = tag;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor.get(), &event) != 0)
      throw system_error("epoll_ctl");
  }

  void end_thread() {
    if (!thread_) return;
    if (fork_guard_->in_child()) {
      // The thread does not exist here: it can be neither joined nor detached.
      [[maybe_unused]] const std::thread* not_here = thread_.release();
      return;
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
    thread_->join();
    thread_.reset();
  }

  void run() {
    // The rendezvous may have read first messages along with its own last ones.
    for (std::size_t peer = 0; peer < links_.size(); ++peer)
      if (links_[peer].connection) read_link(static_cast<int>(peer));
    std::array<epoll_event, 16> events = {};
    while (true) {
      const int count =
          ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        log(LogLevel::error, rank_, "the control thread stops: {}",
            system_error("epoll_wait").what());
        return;
      }
      for (int i = 0; i < count; ++i) {
        const std::uint32_t tag = events[static_cast<std::size_t>(i)].data.u32;
        if (tag == stop_event) return;
        read_link(static_cast<int>(tag));
      }
    }
  }

  void read_link(int peer) {
    Link& link = links_[static_cast<std::size_t>(peer)];
    ReadResult result = ReadResult::closed;
    std::string reason = "its connection closed";
    try {
      result = read_available(link.connection, link.reader);
      while (auto message = link.reader.next()) listener_->on_message(peer, std::move(*message));
    } catch (const Error& error) {
      result = ReadResult::closed;
      reason = error.what();
      const bool is_own_failure = error.code() == Errc::system;
      if (is_own_failure) listener_->on_failure(error);
      // The peer shall still hear why.
      ::shutdown(link.connection.get(), is_own_failure ? SHUT_RD : SHUT_RDWR);
    }
    if (result == ReadResult::open) return;
    // The descriptor stays open until destruction: senders may be using it.
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, link.connection.get(), nullptr);
    listener_->on_gone(peer, reason);
  }

  int rank_;
  std::deque<Link> links_;
  FileDescriptor epoll_;
  FileDescriptor wake_;
  ControlListener* listener_ = nullptr;
  std::optional<ForkGuard> fork_guard_;
  std::unique_ptr<std::thread> thread_;
};

}  // namespace

std::unique_ptr<ControlPlane> make_unix_control_plane(int rank, std::vector<ControlLink> links) {
  return std::make_unique<UnixControlPlane>(rank, std::move(links));
}

}  // namespace iridium
