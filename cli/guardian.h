// What is left when the command is killed.
#pragma once

#include <sys/types.h>

#include <string>

#include "cli/descriptor.h"

namespace iridium::cli {

/// A process that cleans up when this one dies without having done so, as SIGKILL makes it.
class Guardian {
 public:
  /// Removes `folder`, if one is given.
  explicit Guardian(const std::string& folder = {});
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;
  /// There is nothing to clean up any more.
  ~Guardian();

  /// Kills the process group `group`. May be called by a forked child on its own group, before
  /// exec: then no moment is left in which this process dies and the group stays.
  void watch(pid_t group) const noexcept;
  /// The groups and the folder are gone, or about to be.
  void forget() const noexcept;

 private:
  Descriptor link_;  ///< its end tells the guardian of this process's
  pid_t process_ = -1;
};

}  // namespace iridium::cli
