#include "runtime/departure.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <list>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "base/process_mark.h"
#include "base/thread.h"
#include "runtime/fork_guard.h"

namespace iridium {
namespace {

struct Departing {
  std::unique_ptr<Departure> departure;
  QueuedWork work;

  /// Says goodbye if the work is done.
  bool has_gone() noexcept {
    try {
      if (!work.is_done()) return false;
    } catch (const std::exception& error) {
      // Where streams cannot be marked, nothing runs any more either.
      log(LogLevel::debug, -1, "the end of the queued work is unknown: {}", error.what());
    }
    departure->tell(MessageType::goodbye);
    return true;
  }
};

/// All of this process, and the thread that looks at them while there are any.
class Departures {
 public:
  /// Never destroyed: contexts may go while the process exits.
  static Departures& instance() {
    static auto& departures = *new Departures;
    return departures;
  }

  void add(Departing departing) {
    std::unique_lock lock(mutex_);
    if (!process_.is_here()) forget_parents();
    if (has_exited_) {
      lock.unlock();
      departing.has_gone();
      return;
    }
    if (!is_running_) {
      if (!std::exchange(is_registered_, true)) std::atexit([] { instance().exit(); });
      start_thread([this] { run(); }).detach();
      is_running_ = true;
    }
    waiting_.push_back(std::move(departing));
  }

 private:
  static constexpr std::chrono::milliseconds least_pause{1};
  static constexpr std::chrono::milliseconds longest_pause{20};

  void run() {
    auto pause = least_pause;
    std::unique_lock lock(mutex_);
    while (!waiting_.empty() && !has_exited_) {
      std::list<Departing> looked_at = std::exchange(waiting_, {});
      // Not under the lock: what goes with them may wait for a fork, which waits for the lock.
      is_looking_ = true;
      lock.unlock();
      looked_at.remove_if([](Departing& departing) { return departing.has_gone(); });
      lock.lock();
      waiting_.splice(waiting_.begin(), looked_at);
      is_looking_ = false;
      changed_.notify_all();
      // Ended by `exit`, or by time.
      changed_.wait_for(lock, pause, [this] { return has_exited_; });
      pause = std::min(2 * pause, longest_pause);
    }
    is_running_ = false;
  }

  /// Called before a device's driver takes itself apart, which was set up earlier. Nothing here
  /// calls it after that.
  void exit() {
    if (!process_.is_here()) return;
    std::unique_lock lock(mutex_);
    has_exited_ = true;
    changed_.notify_all();
    // Ended by the thread, which never waits while it looks.
    changed_.wait(lock, [this] { return !is_looking_; });
    std::list<Departing> last = std::exchange(waiting_, {});
    lock.unlock();
    for (Departing& departing : last) departing.has_gone();
  }

  /// In a forked child, which has neither the thread nor the links.
  void forget_parents() {
    [[maybe_unused]] static auto& parents = *new std::list<Departing>;
    parents.splice(parents.begin(), waiting_);
    process_ = ProcessMark();
    is_running_ = false;
    is_looking_ = false;
  }

  std::mutex mutex_;
  const ForkGuard fork_guard_{{}, &mutex_};  ///< the thread may hold it
  std::condition_variable changed_;
  ProcessMark process_;
  std::list<Departing> waiting_;
  bool is_running_ = false;
  bool is_looking_ = false;
  bool is_registered_ = false;
  bool has_exited_ = false;
};

}  // namespace

void Departure::tell(MessageType type) noexcept {
  Message message;
  message.type = type;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    try {
      plane_->send(peer, message, Deadline(std::chrono::milliseconds(0)));
    } catch (const std::exception& error) {
      log(LogLevel::debug, rank_, "no goodbye to rank {}: {}", peer, error.what());
    }
  }
}

bool QueuedWork::is_done() {
  if (!work) work = streams->mark_all();
  return work && all_reached(*work);
}

void say_goodbye_after(std::unique_ptr<Departure> departure, QueuedWork work) noexcept {
  try {
    Departures::instance().add({std::move(departure), std::move(work)});
  } catch (const std::exception& error) {
    // The links have closed without a goodbye: that says less than peers could know, and nothing
    // wrong.
    log(LogLevel::warn, -1, "peers are not told when queued work is done: {}", error.what());
  }
}

}  // namespace iridium
