// Fibers: functions of one thread that take turns.
#pragma once

#include <cstddef>
#include <memory>

namespace iridium {

/// A stack on which a function can be run, left in the middle and gone on with.
///
/// Reusable: starting it again costs no allocation. Belongs to one thread: a function that was
/// left in the middle may hold addresses of that thread's variables. ThreadSanitizer takes each
/// fiber for a thread, ordered with its owner only at the function's first entry and at its end.
class Fiber {
 public:
  using Function = void (*)(void* argument);

  /// What a function and all it calls may use; beneath lies a page whose use ends the process.
  static constexpr std::size_t stack_bytes = 256 * 1024;

  /// Maps a stack; throws `out_of_memory` when there is no room for it.
  Fiber();
  /// Ends the process when a function was left in the middle: its locals would never be destroyed.
  ~Fiber();

  /// Only between functions: one that is running knows its fiber by its address. What was moved
  /// from can only be assigned to or destroyed.
  Fiber(Fiber&& other) noexcept;
  Fiber& operator=(Fiber&& other) noexcept;

  /// Arms the fiber: the next `resume()` enters `function`. Throws `invalid_argument` unless
  /// `finished()`.
  void start(Function function, void* argument);

  /// Runs the function until it suspends or ends, and rethrows what it ended with. Throws
  /// `invalid_argument` when there is nothing to run.
  void resume();

  /// From inside the function, on this fiber: goes back to whoever resumed it. Throws
  /// `invalid_argument` when it is not running.
  void suspend();

  /// Whether the function has ended; true for a fiber that was never started.
  bool finished() const;

 private:
  struct Record;
  std::unique_ptr<Record> record_;
};

}  // namespace iridium
