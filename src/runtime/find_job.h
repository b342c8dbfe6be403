// `Job::from_environment` for any environment.
#pragma once

#include "base/settings.h"
#include "iridium/bootstrap.h"

namespace iridium {

Job find_job(const Environment& environment);

/// Throws `invalid_argument` for a size, a rank or a local rank that cannot be.
void check_job(const Job& job);

}  // namespace iridium
