// Ranks that leave while work they have queued still runs.
#pragma once

#include <memory>
#include <optional>

#include "runtime/control_plane.h"
#include "runtime/stream_registry.h"

namespace iridium {

/// The links of a rank that has destroyed its context. They close with this object.
class Departure {
 public:
  Departure(int rank, int size, std::unique_ptr<ControlPlane> plane)
      : rank_(rank), size_(size), plane_(std::move(plane)) {}

  /// Sends a message of nothing but its type to every other rank that takes it at once.
  void tell(MessageType type) noexcept;

 private:
  const int rank_;
  const int size_;
  std::unique_ptr<ControlPlane> plane_;
};

/// What a rank has queued on its streams.
struct QueuedWork {
  std::shared_ptr<StreamRegistry> streams;
  std::optional<Markers> work;  ///< none until the streams could be marked

  /// Never blocks.
  bool is_done();
};

/// Says goodbye when `work` is done, on a thread of its own. When the process exits before that,
/// the links close without a goodbye.
void say_goodbye_after(std::unique_ptr<Departure> departure, QueuedWork work) noexcept;

}  // namespace iridium
