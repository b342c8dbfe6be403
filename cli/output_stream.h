// Writes lines to standard output or standard error without ever waiting for the reader.
#pragma once

#include <cstddef>
#include <string>

namespace iridium::cli {

/// Lines on their way to a descriptor that somebody else owns.
///
/// One write carries at most `PIPE_BUF` bytes, which a pipe that polls writable takes without
/// blocking: a stalled reader cannot keep the launcher from its signals. Lines that fit are never
/// split between two writes; a longer line takes several.
class OutputStream {
 public:
  explicit OutputStream(int descriptor) : descriptor_(descriptor) {}

  int descriptor() const { return descriptor_; }
  /// Where whole lines are appended.
  std::string& pending() { return pending_; }
  bool has_pending() const { return written_ < pending_.size(); }
  /// Whether the last write ended inside a line, which must be finished before anything else is
  /// written where this stream leads.
  bool is_inside_line() const { return is_inside_line_; }
  /// Does one write. For a descriptor that polled writable.
  void write_some();
  /// The `errno` of the write that failed for good, else 0. What was pending is lost by then.
  int failure() const { return failure_; }

 private:
  std::size_t next_write_bytes() const;

  int descriptor_;
  std::string pending_;
  std::size_t written_ = 0;
  bool is_inside_line_ = false;
  int failure_ = 0;
};

}  // namespace iridium::cli
