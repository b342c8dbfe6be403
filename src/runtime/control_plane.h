// The links between ranks, whatever carries them: ordered, reliable messages, and word of who is
// gone.
#pragma once

#include <string>

#include "base/deadline.h"
#include "iridium/errors.h"
#include "runtime/control_message.h"

namespace iridium {

/// Called on the control thread, one call at a time. Must not block.
class ControlListener {
 public:
  virtual ~ControlListener() = default;
  /// May throw `protocol`: the link is then closed like one that broke.
  virtual void on_message(int from, Message message) = 0;
  /// `rank`'s link is closed or broken, for `reason`; nothing more will come from it.
  virtual void on_gone(int rank, const std::string& reason) = 0;
  /// This rank cannot receive what was sent to it: the fault is its own, whose link it was.
  virtual void on_failure(const Error& error) = 0;
};

/// The seat for other transports: a control plane that spans hosts implements this.
/// Destruction stops the control thread and closes the links; it never blocks on a peer.
class ControlPlane {
 public:
  virtual ~ControlPlane() = default;
  /// Starts the control thread. It makes no call into a device's driver, ever.
  virtual void start(ControlListener& listener) = 0;
  /// Sends to another rank, from any thread. False when the rank is gone or does not take it before
  /// the deadline.
  virtual bool send(int to, const Message& message, const Deadline& deadline) = 0;
  /// Ends the sends that other threads have under way, so that nobody has to wait for them.
  virtual void interrupt_sends() {}
  /// Stops the control thread: the listener is not called any more, and what peers send is lost.
  /// This rank can still send.
  virtual void stop() = 0;
};

}  // namespace iridium
