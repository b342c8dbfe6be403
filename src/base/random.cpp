#include "base/random.h"

#include <fmt/format.h>
#include <sys/random.h>

#include "base/system_error.h"

namespace iridium {

std::uint64_t random_id() {
  std::uint64_t id = 0;
  while (id == 0)
    if (::getrandom(&id, sizeof id, 0) != sizeof id) throw system_error("getrandom");
  return id;
}

std::string random_token() {
  return fmt::format("{:016x}{:016x}", random_id(), random_id());
}

}  // namespace iridium
