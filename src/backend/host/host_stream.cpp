#include "backend/host/host_stream.h"

#include <fmt/format.h>

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/host/host_capture.h"
#include "base/log.h"
#include "base/thread.h"
#include "iridium/errors.h"

namespace iridium {
namespace {

/// Memory for kernels' values, aligned as they may be.
struct alignas(detail::most_kernel_alignment) KernelPiece {
  std::byte bytes[detail::most_kernel_alignment];
};

class HostStream;

struct HostEvent final : detail::EventImpl {
  std::shared_ptr<HostCapture> capture;  ///< that it was recorded in, if any
  HostCapture::Past past;                ///< of a capture
  std::weak_ptr<HostStream> stream;      ///< of work that runs
  std::uint64_t ticket = 0;
};

struct LiveStreams {
  std::mutex mutex;
  std::map<const void*, std::weak_ptr<HostStream>> by_handle;
};

/// Never destroyed: a stream's thread may outlive the end of main().
LiveStreams& live_streams() {
  static auto& streams = *new LiveStreams;
  return streams;
}

/// Work carries a ticket, counted from 1; `completed_` is the ticket of the last piece that has
/// ended or was skipped. The thread holds a reference to the stream until the stream is closed and
/// its queue is empty.
class HostStream final : public detail::StreamImpl,
                         public std::enable_shared_from_this<HostStream> {
 public:
  explicit HostStream(const Schedule& schedule) : schedule_(schedule) {}

  std::string place() const override { return host_place; }

  ~HostStream() override {
    // Before its members go: what they hold may be freed, and freeing marks the streams that are
    // left.
    tell_end(nullptr);
    LiveStreams& streams = live_streams();
    const std::lock_guard lock(streams.mutex);
    streams.by_handle.erase(this);
  }

  void copy(void* to, const void* from, std::size_t bytes) override {
    submit([=](BlockScheduler&) { std::memcpy(to, from, bytes); });
  }

  void fill(void* to, unsigned char value, std::size_t bytes) override {
    submit([=](BlockScheduler&) { std::memset(to, value, bytes); });
  }

  void call(std::function<void()> function) override {
    submit([function = std::move(function)](BlockScheduler&) { function(); });
  }

  void launch_kernel(const detail::KernelEntry& entry, const void* kernel, int blocks) override {
    if (const std::string objection = object_to_host_kernel(entry); !objection.empty())
      throw Error(Errc::unsupported, objection);
    std::vector<KernelPiece> value((entry.bytes + sizeof(KernelPiece) - 1) / sizeof(KernelPiece));
    std::memcpy(value.data(), kernel, entry.bytes);
    submit([&entry, blocks, value = std::move(value)](BlockScheduler& scheduler) {
      scheduler.run(entry, value.data(), blocks);
    });
  }

  void retain(std::shared_ptr<const detail::Resource> resource) override {
    Operation hold = [resource](BlockScheduler&) {};
    std::unique_lock lock(mutex_);
    throw_failure(lock);
    if (!capture_ || !capture_->retain(std::move(resource))) enqueue(lock, hold);
  }

  void retain_in_capture(std::shared_ptr<const detail::Resource> resource) override {
    const std::lock_guard lock(mutex_);
    if (capture_) capture_->retain(std::move(resource));
  }

  void synchronize() override {
    std::unique_lock lock(mutex_);
    refuse_capture("synchronize");
    // Ended by the stream's thread: every operation returns, and every wait inside one is bounded.
    done_.wait(lock, [this, ticket = submitted_] { return completed_ >= ticket; });
    throw_failure(lock);
  }

  bool idle() override {
    std::unique_lock lock(mutex_);
    refuse_capture("idle");
    throw_failure(lock);
    return completed_ == submitted_;
  }

  void begin_capture() override {
    std::unique_lock lock(mutex_);
    throw_failure(lock);
    refuse_closed();
    if (is_capturing())
      throw Error(Errc::invalid_argument, "begin_capture: this stream is capturing already");
    capture_ = std::make_shared<HostCapture>();
    recorder_ = std::this_thread::get_id();
  }

  std::shared_ptr<const detail::GraphImpl> end_capture() override {
    std::shared_ptr<const HostGraph> graph;  // outlives the lock: dropping it frees arrays
    const std::lock_guard lock(mutex_);
    if (!is_capturing())
      throw Error(Errc::invalid_argument, "end_capture: this stream is not capturing");
    if (!recorder_)
      throw Error(Errc::invalid_argument,
                  "end_capture: the capture was begun on another stream, which must end it");
    // As on a GPU.
    if (recorder_ != std::this_thread::get_id())
      throw Error(Errc::invalid_argument,
                  "end_capture: the capture was begun by another thread, which must end it");
    recorder_.reset();
    const auto capture = std::exchange(capture_, nullptr);
    graph = capture->end();
    if (!capture->is_behind_all(this))
      throw Error(Errc::invalid_argument,
                  "end_capture: another stream has recorded work in this capture, which this one "
                  "has not waited for; the capture is lost");
    return graph;
  }

  CaptureStatus capture_status() const override {
    const std::lock_guard lock(mutex_);
    return is_capturing() ? CaptureStatus::active : CaptureStatus::none;
  }

  void launch(std::shared_ptr<const detail::GraphImpl> graph) override {
    auto host_graph = std::dynamic_pointer_cast<const HostGraph>(graph);
    if (!host_graph)
      throw Error(Errc::invalid_argument, "launch: the graph was captured on another backend");
    Operation run_all = [host_graph](BlockScheduler& scheduler) {
      for (const Operation& operation : host_graph->operations) operation(scheduler);
    };
    std::unique_lock lock(mutex_);
    throw_failure(lock);
    if (!capture_ || !capture_->add(this, *host_graph)) enqueue(lock, run_all);
  }

  std::shared_ptr<const detail::EventImpl> record() override {
    auto event = std::make_shared<HostEvent>();
    std::unique_lock lock(mutex_);
    throw_failure(lock);
    refuse_closed();
    if (is_capturing()) {
      event->capture = capture_;
      event->past = capture_->past_of(this);
    } else {
      event->stream = weak_from_this();
      event->ticket = submitted_;
    }
    return event;
  }

  void wait(std::shared_ptr<const detail::EventImpl> event) override {
    const auto host_event = std::dynamic_pointer_cast<const HostEvent>(event);
    if (!host_event)
      throw Error(Errc::invalid_argument, "wait: the event was recorded on another backend");
    Operation wait_for_it = [host_event](BlockScheduler&) {
      if (const auto stream = host_event->stream.lock()) stream->await(host_event->ticket);
    };
    std::unique_lock lock(mutex_);
    throw_failure(lock);
    if (is_capturing() && capture_ != host_event->capture)
      throw Error(Errc::capture_unsupported,
                  "wait: the event was not recorded in this capture; the capture goes on");
    if (!host_event->capture) {
      enqueue(lock, wait_for_it);
      return;
    }
    refuse_closed();
    if (!host_event->capture->join(this, host_event->past))
      throw Error(Errc::invalid_argument,
                  "wait: the event was recorded in a capture that has ended");
    capture_ = host_event->capture;
  }

  void* native_handle() const override { return const_cast<HostStream*>(this); }

  void close() noexcept override {
    std::shared_ptr<const HostGraph> abandoned;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      if (capture_ && recorder_) abandoned = capture_->end();
      capture_.reset();
    }
    work_.notify_all();
  }

  std::unique_ptr<Marker> mark() override;

  bool completed(std::uint64_t ticket) const {
    const std::lock_guard lock(mutex_);
    return completed_ >= ticket;
  }

  /// For threads of other streams.
  void await(std::uint64_t ticket) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return completed_ >= ticket; });
  }

 private:
  void submit(Operation operation) {
    std::unique_lock lock(mutex_);
    throw_failure(lock);
    if (!capture_ || !capture_->add(this, operation)) enqueue(lock, operation);
  }

  /// A capture that this stream has joined ends without it.
  bool is_capturing() const { return capture_ && !capture_->is_over(); }

  /// Takes the operation only when it succeeds: what an operation holds must not be freed under the
  /// lock, since freeing an array marks streams.
  void enqueue(std::unique_lock<std::mutex>& lock, Operation& operation) {
    refuse_closed();
    if (!started_) {
      start_thread([self = shared_from_this()] { run(*self); }).detach();
      started_ = true;
    }
    queue_.push_back(std::move(operation));
    ++submitted_;
    lock.unlock();
    work_.notify_one();
  }

  static void run(HostStream& stream) {
    stream.scheduler_.emplace(stream.schedule_);
    while (stream.run_next(*stream.scheduler_)) {
    }
    stream.scheduler_.reset();
  }

  /// Runs one operation; false when the stream is closed and nothing is left.
  bool run_next(BlockScheduler& scheduler) {
    std::unique_lock lock(mutex_);
    work_.wait(lock, [this] { return closed_ || !queue_.empty(); });
    if (queue_.empty()) {
      if (failure_) log(LogLevel::warn, -1, "a destroyed stream had failed work: {}", *failure_);
      return false;
    }
    Operation operation = std::move(queue_.front());
    queue_.pop_front();
    const bool skip = failure_.has_value() || completed_ < skip_through_;
    lock.unlock();

    std::optional<std::string> failure;
    if (!skip) failure = run_operation(operation, scheduler);
    operation =
        nullptr;  // what it held may be freed, and freeing marks streams: not under the lock

    lock.lock();
    if (failure) failure_ = std::move(failure);
    ++completed_;
    done_.notify_all();
    return true;
  }

  static std::optional<std::string> run_operation(const Operation& operation,
                                                  BlockScheduler& scheduler) {
    try {
      operation(scheduler);
      return std::nullopt;
    } catch (const std::exception& error) {
      return error.what();
    } catch (...) {
      return "an exception of unknown type";
    }
  }

  void throw_failure(std::unique_lock<std::mutex>&) {
    if (!failure_) return;
    skip_through_ = submitted_;
    const std::string reason = *std::exchange(failure_, std::nullopt);
    throw Error(Errc::stream_failed, fmt::format("work queued on the stream failed: {}", reason));
  }

  void refuse_closed() const {
    if (closed_) throw Error(Errc::invalid_argument, "the stream was destroyed by its owner");
  }

  void refuse_capture(const char* call) const {
    if (is_capturing())
      throw Error(Errc::capture_unsupported,
                  fmt::format("{} cannot be part of a capture; the capture goes on", call));
  }

  const Schedule schedule_;
  /// The thread's own. Not on its stack, where a leak checker would not find it while a fiber runs.
  std::optional<BlockScheduler> scheduler_;
  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable done_;
  std::deque<Operation> queue_;
  std::uint64_t submitted_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t skip_through_ = 0;  ///< work up to this ticket was queued behind a failure
  std::optional<std::string> failure_;
  std::shared_ptr<HostCapture> capture_;     ///< begun here, or joined; may be over
  std::optional<std::thread::id> recorder_;  ///< who began the capture, if that was here
  bool started_ = false;
  bool closed_ = false;
};

class HostMarker final : public Marker {
 public:
  HostMarker(std::weak_ptr<const HostStream> stream, std::uint64_t ticket)
      : stream_(std::move(stream)), ticket_(ticket) {}

  bool reached() const override {
    const auto stream = stream_.lock();
    return !stream || stream->completed(ticket_);
  }

 private:
  std::weak_ptr<const HostStream> stream_;
  std::uint64_t ticket_;
};

std::unique_ptr<Marker> HostStream::mark() {
  const std::lock_guard lock(mutex_);
  return std::make_unique<HostMarker>(weak_from_this(), submitted_);
}

}  // namespace

std::string object_to_host_kernel(const detail::KernelEntry& entry) {
  if (entry.run_on_host != nullptr) return {};
  return fmt::format(
      "{} runs on GPUs only: it has {} bytes of block memory and clusters of {} blocks, "
      "which CPUs do not have",
      entry.name, entry.block_bytes, entry.cluster);
}

std::shared_ptr<detail::StreamImpl> make_host_stream(const Schedule& schedule) {
  auto stream = own_by_process(std::make_unique<HostStream>(schedule));
  LiveStreams& streams = live_streams();
  const std::lock_guard lock(streams.mutex);
  streams.by_handle[stream.get()] = stream;
  return stream;
}

std::shared_ptr<detail::StreamImpl> find_host_stream(void* native_handle) {
  LiveStreams& streams = live_streams();
  const std::lock_guard lock(streams.mutex);
  const auto found = streams.by_handle.find(native_handle);
  std::shared_ptr<HostStream> stream;
  if (found != streams.by_handle.end()) stream = found->second.lock();
  if (!stream)
    throw Error(Errc::invalid_argument,
                fmt::format("{} is no stream of the host backend", fmt::ptr(native_handle)));
  return stream;
}

}  // namespace iridium
