// Forked children. Their copies of what the parent made name threads, mappings and devices that are
// not theirs.
#pragma once

#include <cstdint>
#include <memory>

#include "iridium/errors.h"

namespace iridium {

/// Remembers the process that made it.
class ProcessMark {
 public:
  ProcessMark();
  /// False in a child that was forked since.
  bool is_here() const;

 private:
  std::uint64_t forks_;
};

/// What calls throw in a child on what its parent made.
Error forked_child_error();

/// Never lets go of `object`: a child's copy of what its parent made. Taking it apart could wait
/// for a lock that a thread of the parent held, and would call a device that the child does not
/// have.
void keep_parents(std::shared_ptr<const void> object);

/// An object whose copy in a forked child is kept. T has `process()`, the mark of who made it.
template <class T>
std::shared_ptr<T> own_by_process(std::unique_ptr<T> object) {
  return {object.release(), [](T* last) {
            std::unique_ptr<T> owned(last);
            if (!last->process().is_here()) keep_parents(std::move(owned));
          }};
}

}  // namespace iridium
