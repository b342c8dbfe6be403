// What a rank's context, its teams and its arrays share. Teams may outlive the context; after
// `Context` is gone their collective calls throw.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/host_wait.h"
#include "iridium/context.h"
#include "runtime/heap.h"
#include "runtime/mailbox.h"
#include "runtime/status_pool.h"
#include "runtime/stream_registry.h"
#include "runtime/team_terms.h"

namespace iridium {

class ContextCore {
 public:
  /// Meets the other ranks and maps their segments. What one of them fails with in between, all do.
  ContextCore(const Job& job, const ContextOptions& options);

  int rank() const { return rank_; }
  const ProcessMark& process() const { return process_; }
  /// Throws `unsupported` in a child that was forked since.
  void require_own_process() const {
    if (!process_.is_here()) throw forked_child_error();
  }
  int size() const { return size_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  /// Of waits while a team is made.
  WaitLimit construction_limit() const {
    return iridium::construction_limit(construction_timeout_);
  }
  std::size_t heap_bytes() const { return heap_bytes_; }
  int lanes_at_once() const { return lanes_at_once_; }
  bool checked() const { return checked_; }
  Backend& backend() const { return *backend_; }
  Heap& heap() const { return *heap_; }
  const std::shared_ptr<StreamRegistry>& streams() const { return streams_; }
  Mailbox& mailbox() const { return *mailbox_; }

  StatusPool& statuses() const { return *statuses_; }

  /// Before work of this context goes onto a stream that another one may have made: the heap waits
  /// for it, too, before it uses freed memory again. Throws `invalid_argument`, naming both places,
  /// for a stream elsewhere, and like `require_own_process`.
  void adopt(const std::shared_ptr<detail::StreamImpl>& stream) const;

  /// Launches a kernel; see `Context::launch`.
  void launch(detail::StreamImpl& stream, Grid grid, const detail::KernelEntry& entry,
              const void* kernel) const;

  /// Tells who asked to be told that a step of the construction begins.
  void announce(std::string_view step) const;
  /// Runs a step of the construction. What it throws, all ranks get.
  void fail_together(const std::function<void()>& body);
  /// Runs a step of `call` on every rank. What it throws on one, all throw, and later calls work.
  void succeed_together(const std::string& call, const std::function<void()>& body);

  /// All ranks, in order.
  const std::vector<int>& ranks() const { return everyone_.members; }

  /// Compares what every rank brings to a team made with `options`: an exchange among all ranks.
  TeamTerms agree(const std::string& call, const std::vector<int>& members,
                  const TeamOptions& options);

  /// Collective over the world; see `Context::allocate`. The caller holds the context's collective
  /// lock.
  std::shared_ptr<detail::Allocation> allocate(std::size_t bytes, std::size_t alignment) {
    return allocate(bytes, alignment, call_limit(timeout_));
  }
  /// The same under another limit.
  std::shared_ptr<detail::Allocation> allocate(std::size_t bytes, std::size_t alignment,
                                               const WaitLimit& limit);
  /// An exchange among all ranks that no team's failure touches: for calls that make teams and
  /// arrays.
  std::vector<Contribution> exchange_all(const std::string& call, Contribution mine,
                                         const WaitLimit& limit);
  /// An exchange among the members of `channel`. Waits for `patience` timeouts.
  std::vector<Contribution> exchange(Channel& channel, const std::string& call, Contribution mine,
                                     int patience = 1);
  /// Throws `capture_unsupported` when a stream of this context is capturing.
  void refuse_capture(const std::string& call) const;
  /// Says goodbye to the other ranks: now, or when the work that this rank has queued is done.
  /// Never blocks; afterwards collective calls throw.
  void leave() noexcept;
  /// Channel ids are drawn at collective calls, so they agree.
  std::uint32_t next_channel_id() { return ++last_channel_id_; }

 private:
  /// How many of a rank's waiting grids run at the same time.
  int lanes_that_run(bool exclusive) const;
  TeamTerms terms(const std::vector<int>& members, const TeamOptions& options) const;
  /// Makes the backend.
  void set_up(const Job& job, const ContextOptions& options);
  void map_segments(std::uint64_t context_id);
  /// False when the deadline came first.
  bool wait_for_own_frees(const std::string& call, HostWait& wait) const;

  const ProcessMark process_;
  const int rank_;
  const int size_;
  const std::chrono::milliseconds timeout_;
  const std::chrono::milliseconds construction_timeout_;
  const int lanes_at_once_;
  const bool checked_;
  std::size_t heap_bytes_ = 0;
  std::function<void(std::string_view)> on_step_;
  std::unique_ptr<Backend> backend_;
  std::shared_ptr<StreamRegistry> streams_ = std::make_shared<StreamRegistry>();
  std::shared_ptr<Heap> heap_;
  std::shared_ptr<StatusPool> statuses_;
  std::unique_ptr<Mailbox> mailbox_;
  Channel everyone_;
  std::uint32_t last_channel_id_ = 0;
};

}  // namespace iridium
