// The environment variables by which a rank finds its job.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/run.h"

namespace iridium::cli {

/// What the ranks of one job have in common, and nobody else knows.
struct JobIdentity {
  std::string job;    ///< 32 hexadecimal digits
  std::string token;  ///< 32 hexadecimal digits
};

/// A fresh identity from the operating system's random numbers.
JobIdentity make_job_identity();

/// The environment of this process, "NAME=value" each.
std::vector<std::string> current_environment();

/// Variables with their new values; one without a value is taken out.
using EnvironmentChanges = std::map<std::string, std::optional<std::string>, std::less<>>;

/// `environment` with `changes` made to it.
std::vector<std::string> changed_environment(const std::vector<std::string>& environment,
                                             const EnvironmentChanges& changes);

/// `environment` as rank `rank` of the job gets it.
std::vector<std::string> rank_environment(const std::vector<std::string>& environment,
                                          const RunOptions& options, const JobIdentity& identity,
                                          int rank);

/// The backend that ranks started so are told to use, by the option or by IRIDIUM_BACKEND; empty
/// where neither says.
std::string backend_of_ranks(const RunOptions& options);

}  // namespace iridium::cli
