// Streams and graphs: in-order, asynchronous work, eager or captured. The same three types on every
// backend.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace iridium {

class Graph;
class Marker;
namespace detail {
class StreamImpl;
class GraphImpl;
class EventImpl;
struct Access;

/// What streams and graphs can keep alive.
class Resource {
 public:
  Resource() = default;
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;
  virtual ~Resource() = default;
  /// Its memory is used again only after `work`. Streams that go before their work is done call it:
  /// the resource may be of a context that does not know them.
  virtual void keep_until(std::shared_ptr<const Marker> work) const = 0;
};
}  // namespace detail

/// Whether a stream is recording instead of running.
enum class CaptureStatus {
  none,         ///< calls run
  active,       ///< calls are recorded
  invalidated,  ///< recording was broken by a foreign call; `end_capture` will throw
};

/// A point in a stream's work, for other streams to wait for (`StreamRef::record`). Copies name the
/// same point. Thread safety: all of it.
class Event {
 public:
  /// Names no point; waiting for it is an error.
  Event() = default;

 private:
  friend class StreamRef;
  explicit Event(std::shared_ptr<const detail::EventImpl> impl);
  std::shared_ptr<const detail::EventImpl> impl_;
};

/// A stream somebody else owns. Copies name the same stream.
///
/// Calls return at once; work runs in the order of the calls. When queued work fails, the next call
/// on the stream throws `stream_failed` with the reason, and after that the stream works again,
/// unless the failure has ended the whole CUDA context. The host backend skips what was queued
/// behind the failure; on a GPU it still runs.
/// Thread safety: calls from several threads are serialised, in no particular order. A capture
/// records what every thread calls on the stream, and is ended by the thread that began it.
class StreamRef {
 public:
  /// Copies `bytes` bytes; the ranges may not overlap. Both must stay valid until the work is done.
  void copy(void* to, const void* from, std::size_t bytes);
  /// Sets `bytes` bytes to `value`.
  void fill(void* to, unsigned char value, std::size_t bytes);
  /// Calls `function` on a host thread when the stream gets there; it may not call Iridium, nor own
  /// streams, graphs or contexts. When captured, it is called at every replay.
  void call(std::function<void()> function);

  /// The end of the work queued so far.
  Event record();
  /// Work queued here from now on begins when the event's point is reached. Returns at once.
  ///
  /// An event that was recorded in a capture takes this stream into that capture: what is called
  /// here is recorded, too, until the capture ends. Before that, the stream that began it has to
  /// wait for an event behind all of it, or `end_capture` throws `invalid_argument` and the capture
  /// is lost. Throws `invalid_argument` when that capture has ended, and `capture_unsupported` when
  /// this stream is capturing and the event is not of the same capture, which goes on. On CPUs
  /// branches of a graph run one after another, in the order in which they were recorded.
  void wait(const Event& event);

  /// Waits until all work is done, however long it takes: only waits for other ranks are bounded.
  /// Throws `capture_unsupported` while capturing and leaves the capture valid.
  void synchronize();
  /// Whether all work is done. May not be asked while capturing, like `synchronize`.
  bool idle();

  /// From here on calls are recorded, not run. Throws `invalid_argument` when a capture is active
  /// already. On a borrowed stream keep a reference until `end_capture`: with the last one goes
  /// what the graph would keep alive.
  void begin_capture();
  /// Ends the capture and returns what was recorded.
  Graph end_capture();
  CaptureStatus capture_status() const;
  /// Runs the graph's work as one piece of this stream's work. While capturing, records it as part
  /// of the capture.
  void launch(const Graph& graph);

  /// The backend's own handle: a `cudaStream_t`, or on the host backend an opaque pointer.
  void* native_handle() const;

 private:
  friend class Stream;
  friend class Context;
  friend class Team;
  friend struct detail::Access;
  explicit StreamRef(std::shared_ptr<detail::StreamImpl> impl);
  std::shared_ptr<detail::StreamImpl> impl_;

  /// Throws `unsupported` in a child that was forked since the stream was made.
  detail::StreamImpl& impl() const;
  /// Keeps `resource` alive as long as the graph being captured, or until the work queued so far
  /// is done.
  void retain(std::shared_ptr<const detail::Resource> resource);
  /// Keeps `resource` alive as long as the graph being captured by Iridium, if any.
  void retain_in_capture(std::shared_ptr<const detail::Resource> resource);
  template <class T>
  friend class SymmetricArray;
};

/// A stream of one's own. Destruction never blocks: work still queued runs to its end on its own,
/// as long as the process lives.
class Stream : public StreamRef {
 public:
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

 private:
  friend class Context;
  explicit Stream(std::shared_ptr<detail::StreamImpl> impl);
  void close() noexcept;
};

/// Recorded work that can be launched any number of times on any stream of the same backend.
/// Keeps alive the arrays and teams that were passed to `retain_on` during the capture, and the
/// teams whose operations it holds.
/// Copies share the graph.
/// Thread safety: all of it; in which order launches on several streams run is the program's
/// matter.
class Graph {
 public:
  /// How many operations were recorded. A graph launched during the capture counts as one on a GPU,
  /// and as its operations on the host.
  std::size_t node_count() const;

 private:
  friend class StreamRef;
  explicit Graph(std::shared_ptr<const detail::GraphImpl> impl);
  std::shared_ptr<const detail::GraphImpl> impl_;
};

}  // namespace iridium
